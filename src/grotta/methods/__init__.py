"""The methods: one short file each, all behind :func:`create`."""

from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.bn import BN
from grotta.methods.checkpoint import load
from grotta.methods.grotta import GRoTTA
from grotta.methods.registry import create, list_methods, method_class, register
from grotta.methods.source import Source
from grotta.methods.step_info import StepInfo

__all__ = [
    "BN",
    "Adapter",
    "Batch",
    "GRoTTA",
    "Learned",
    "Prediction",
    "Source",
    "StepInfo",
    "create",
    "list_methods",
    "load",
    "method_class",
    "register",
]
