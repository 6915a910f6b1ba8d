"""Published numbers as values, to be shown beside ours. None are known here: they are passed in."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

AVERAGE = "Avg"
GAIN = "gain"


@dataclass(frozen=True)
class Slip:
    """A printed number that is in doubt: why, and what would fit if that is known."""

    row: str
    column: str
    consistent: float | None
    note: str


@dataclass(frozen=True)
class PrintedTable:
    """A published table of errors in per cent."""

    name: str  # ``main/DATASET``, ``domains/DATASET/GAMMA``, ``transfer/DATASET/GAMMA/METHOD`` or the like
    dataset: str  # the data set of all its numbers
    caption: str  # where it was published and what it shows
    columns: tuple[str, ...]  # their names, the average last
    rows: Mapping[str, tuple[float | None, ...]]  # the numbers by row, ``None`` where none was printed
    gain: float | None = None  # of the best average over the second best method's, as printed; ``None`` where none is
    slips: tuple[Slip, ...] = ()  # those of its numbers that are in doubt

    def value(self, row: str, column: str) -> float | None:
        """The printed number, or ``None`` if there is none.

        >>> PrintedTable("t", "cifar10-c", "", ("0.1", "Avg"), {"bn": (52.2, 67.9)}).value("bn", "0.1")
        52.2
        """
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]

    def gain_of(self, row: str) -> float | None:
        """The printed gain, if it is in this row: that of the best average, or of the average over source models."""
        best = AVERAGE if AVERAGE in self.rows else min(self.rows, key=lambda name: self.rows[name][-1] or math.inf)
        return self.gain if row == best else None

    def note(self, row: str, column: str) -> str:
        """Why the printed number is in doubt; ``""`` if it is not."""
        return next((slip.note for slip in self.slips if (slip.row, slip.column) == (row, column)), "")


@dataclass(frozen=True)
class Printed:
    """Everything published that tables may show beside our numbers."""

    # by name; there is not one for every data set and gamma
    tables: Mapping[str, PrintedTable] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)  # the network that was used, by data set
    data: Mapping[str, str] = field(default_factory=dict)  # what was used of a data set, by its name

    @classmethod
    def union(cls, parts: Iterable[Self]) -> Self:
        tables: dict[str, PrintedTable] = {}
        networks: dict[str, str] = {}
        data: dict[str, str] = {}
        for part in parts:
            tables |= part.tables
            networks |= part.networks
            data |= part.data
        return cls(tables, networks, data)


NOTHING_PRINTED = Printed()
