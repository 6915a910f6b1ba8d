"""How long a cell takes compared with others, roughly: for the order of the cells and the time that is left."""

from grotta.bench.spec import CellSpec
from grotta.methods import Adapter, list_methods, method_class


def cost(spec: CellSpec) -> float:
    """The expected time of a cell, in a unit of its own.

    >>> fog = {"dataset": "fashion-c", "domains": ("fog",), "gamma": 0.1}
    >>> cost(CellSpec(method="grotta", **fog)) > cost(CellSpec(method="source", **fog))
    True
    """
    known = spec.method in list_methods()  # experiments are not, before they run
    return (method_class(spec.method).cost if known else Adapter.cost) * len(spec.domains)
