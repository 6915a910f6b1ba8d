"""Every number that the paper printed, to stand beside ours.

The numbers are in ``assets/paper.json`` exactly as printed; what is known to be a slip is marked, never corrected.
Tables are named ``main/DATASET``, ``domains/imagenet-c/GAMMA``, ``transfer/domainnet/GAMMA/METHOD`` (rows are source
domains), ``ablation``, ``affinity`` and ``orders``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

AVERAGE = "Avg"
GAIN = "gain"


@dataclass(frozen=True)
class Slip:
    """A printed number that is not believed: why, and what would fit if that is known."""

    table: str
    row: str
    column: str
    consistent: float | None
    note: str


@dataclass(frozen=True)
class PaperTable:
    """A table of errors in per cent.

    Attributes:
        name: see the module's first lines.
        dataset: the data set of all its numbers.
        caption: where it stands in the paper and what it shows.
        columns: their names, the average last.
        rows: the numbers by row, ``None`` where the paper has none.
        gain: of the best average over the second best method's, as printed; ``None`` where none is.
    """

    name: str
    dataset: str
    caption: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    gain: float | None = None

    def value(self, row: str, column: str) -> float | None:
        """The printed number, or ``None`` if there is none.

        >>> table("main/cifar10-c").value("grotta", "0.0001")
        5.5
        """
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]

    def gain_of(self, row: str) -> float | None:
        """The printed gain, if it stands in this row: that of the best average, or of the average over source models.

        >>> table("main/cifar10-c").gain_of("grotta"), table("main/cifar10-c").gain_of("bn")
        (14.6, None)
        """
        best = AVERAGE if AVERAGE in self.rows else min(self.rows, key=lambda name: self.rows[name][-1] or math.inf)
        return self.gain if row == best else None

    def note(self, row: str, column: str) -> str:
        """Why the printed number is not believed; ``""`` if nothing is known against it.

        >>> table("transfer/domainnet/0.0001/lame").note("real", "Avg")
        'the five errors of this row average to 63.6'
        """
        return next((s.note for s in slips() if (s.table, s.row, s.column) == (self.name, row, column)), "")


def table(name: str) -> PaperTable:
    """The table of that name; ``KeyError`` if the paper has none."""
    return _tables()[name]


def find(name: str) -> PaperTable | None:
    """The table of that name, or ``None``: the paper does not print one for every data set and gamma.

    >>> find("main/fashion-c") is None
    True
    """
    return _tables().get(name)


def names() -> list[str]:
    """The names of all tables."""
    return list(_tables())


def network(dataset: str) -> str:
    """The network that the paper used on a data set, or ``""`` if it did not use the data set."""
    return str(_content()["networks"].get(dataset, ""))


def data(dataset: str) -> str:
    """What the paper used of a data set, or ``""`` if it did not use it."""
    return str(_content()["data"].get(dataset, ""))


@cache
def slips() -> tuple[Slip, ...]:
    """The printed numbers that are not believed."""
    return tuple(Slip(**slip) for slip in _content()["slips"])


def gamma_name(gamma: float) -> str:
    """A gamma as the columns are named.

    >>> [gamma_name(gamma) for gamma in (1e-1, 1e-4, 1.0, 10.0)]
    ['0.1', '0.0001', '1', '10']
    """
    return f"{gamma:.10f}".rstrip("0").rstrip(".") if 1e-10 <= gamma < 1e6 else repr(gamma)


@cache
def _tables() -> dict[str, PaperTable]:
    return {entry["name"]: _table(entry) for entry in _content()["tables"]}


def _table(entry: Mapping[str, Any]) -> PaperTable:
    rows = {row: tuple(numbers) for row, numbers in entry["rows"].items()}
    return PaperTable(**{**entry, "columns": tuple(entry["columns"]), "rows": rows})


@cache
def _content() -> dict[str, Any]:
    text = resources.files("grotta.paper").joinpath("assets/paper.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
