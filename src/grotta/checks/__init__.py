"""The contract: what every method must do, as functions that fail with an ``AssertionError`` where it does not.

Run them all on a method of your own, after ``@grotta.register("mine")``, with ``grotta.checks.check_method("mine")``.
"""

from grotta.checks.contract import CHECKS, Check, check, check_method, check_on_any_network
from grotta.checks.networks import (
    CLASSES,
    ChannelNorm,
    Norm,
    batches,
    networks_with,
    refusal,
    run,
    same,
    same_state,
    small_model,
)

__all__ = [
    "CHECKS",
    "CLASSES",
    "ChannelNorm",
    "Check",
    "Norm",
    "batches",
    "check",
    "check_method",
    "check_on_any_network",
    "networks_with",
    "refusal",
    "run",
    "same",
    "same_state",
    "small_model",
]
