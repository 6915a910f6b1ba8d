"""The methods: one short file each, all behind :func:`create`."""

from grotta.methods.base import Adapter, Batch, Learned, Pending, Prediction
from grotta.methods.bn import BN
from grotta.methods.checkpoint import load
from grotta.methods.cotta import CoTTA
from grotta.methods.deyo import DeYO
from grotta.methods.eata import EATA
from grotta.methods.grotta import GRoTTA
from grotta.methods.grotta_plus import GRoTTAPlus
from grotta.methods.lame import LAME
from grotta.methods.note import NOTE
from grotta.methods.ods import ODS
from grotta.methods.petta import PeTTA
from grotta.methods.pl import PL
from grotta.methods.rdumb import RDumb
from grotta.methods.registry import PAPER_METHODS, create, list_methods, method_class, register
from grotta.methods.roid import ROID
from grotta.methods.rotta import RoTTA
from grotta.methods.sar import SAR
from grotta.methods.source import Source
from grotta.methods.step_info import StepInfo
from grotta.methods.tent import Tent
from grotta.methods.tribe import TRIBE

__all__ = [
    "BN",
    "EATA",
    "LAME",
    "NOTE",
    "ODS",
    "PAPER_METHODS",
    "PL",
    "ROID",
    "SAR",
    "TRIBE",
    "Adapter",
    "Batch",
    "CoTTA",
    "DeYO",
    "GRoTTA",
    "GRoTTAPlus",
    "Learned",
    "PeTTA",
    "Pending",
    "Prediction",
    "RDumb",
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
