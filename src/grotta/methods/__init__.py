"""The methods: one short file each, all behind :func:`create`."""

from grotta.methods.base import Adapter, Batch, Learned, Pending, Prediction
from grotta.methods.bn import BN
from grotta.methods.checkpoint import load
from grotta.methods.cotta import CoTTA
from grotta.methods.grotta import GRoTTA
from grotta.methods.lame import LAME
from grotta.methods.note import NOTE
from grotta.methods.ods import ODS
from grotta.methods.pl import PL
from grotta.methods.registry import PAPER_METHODS, create, list_methods, method_class, register
from grotta.methods.rotta import RoTTA
from grotta.methods.source import Source
from grotta.methods.step_info import StepInfo
from grotta.methods.tent import Tent

__all__ = [
    "BN",
    "LAME",
    "NOTE",
    "ODS",
    "PAPER_METHODS",
    "PL",
    "Adapter",
    "Batch",
    "CoTTA",
    "GRoTTA",
    "Learned",
    "Pending",
    "Prediction",
    "RoTTA",
    "Source",
    "StepInfo",
    "Tent",
    "create",
    "list_methods",
    "load",
    "method_class",
    "register",
]
