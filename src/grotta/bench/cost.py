"""How long a cell takes compared with others, roughly: for the order of the cells and the remaining time."""

from grotta.bench import experiments
from grotta.bench.spec import CellSpec
from grotta.methods import Adapter, list_methods, method_class

_IMAGES = 10_000  # in a domain of which all images are used: most have about this many


def cost(spec: CellSpec) -> float:
    """The expected time of a cell, in an arbitrary unit.

    >>> fog = {"dataset": "fashion-c", "domains": ("fog",), "gamma": 0.1}
    >>> cost(CellSpec(method="grotta", **fog)) > cost(CellSpec(method="source", **fog))
    True
    """
    experiments.prepare(spec.method)
    method = method_class(spec.method) if spec.method in list_methods() else Adapter
    return method.cost * len(spec.domains) * (spec.images or _IMAGES)
