"""How long a cell takes compared with others, roughly: for the order of the cells and the time that is left."""

from grotta.bench.spec import CellSpec

# Time an image in units of the source model's forward pass, measured with the bundled network.
_PASSES = {
    "source": 1.0,
    "bn": 1.0,
    "lame": 1.2,
    "tent": 2.0,
    "pl": 2.0,
    "ods": 2.2,
    "rotta": 5.0,
    "note": 6.5,
    "grotta": 7.0,
    "cotta": 38.0,
}
_UNKNOWN = 7.0


def cost(spec: CellSpec) -> float:
    """The expected time of a cell, in a unit of its own.

    >>> fog = {"dataset": "fashion-c", "domains": ("fog",), "gamma": 0.1}
    >>> cost(CellSpec(method="grotta", **fog)) > cost(CellSpec(method="source", **fog))
    True
    """
    return _PASSES.get(spec.method, _UNKNOWN) * len(spec.domains)
