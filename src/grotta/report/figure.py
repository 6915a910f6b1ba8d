"""Figures as values: what is drawn, not how."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

from grotta._check import check_whole
from grotta.bench.store.results import CellResult

Kind = Literal["line", "marked", "dots", "bubbles"]
Scale = Literal["linear", "log", "time"]
PALETTE = 10  # colours that a reader can tell apart; beyond that they repeat with other dashes


@dataclass(frozen=True)
class Series:
    """A named sequence of points."""

    label: str  # its name in the legend
    x: tuple[float, ...]  # of the points
    y: tuple[float, ...]
    color: int  # a number from 0; the same number is drawn the same way everywhere
    # a ``line``, a line ``marked`` at its points, ``dots`` alone, or ``bubbles`` whose areas are ``sizes``
    kind: Kind = "line"
    sizes: tuple[float, ...] = ()  # in [0, 1], for bubbles

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.kind == "bubbles" and len(self.sizes) != len(self.x)):
            raise ValueError(f"series {self.label!r}: x, y and sizes must be of one length")
        check_whole(f"series {self.label!r}: color", self.color, at_least=0)


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str  # above it
    x_label: str
    y_label: str
    series: tuple[Series, ...]  # what is drawn, the first at the bottom
    x_scale: Scale = "linear"  # ``linear``, ``log``, or ``time``: x is then in seconds as :func:`seconds` gives them
    y_range: tuple[float, float] | None = None  # from and to; from the data if left out
    sections: tuple[tuple[float, str], ...] = ()  # where named parts of the x axis begin, such as domains
    # values of x and what is written there; chosen by the scale if left out
    x_ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """Numbers by row and column, the larger the darker."""

    title: str  # above it
    rows: tuple[str, ...]  # names
    columns: tuple[str, ...]  # names
    values: tuple[tuple[float | None, ...], ...]  # one tuple per row, ``None`` where there is no number
    high: float | None = None  # the value that is drawn darkest, and all above it; the largest if left out
    decimals: int = 1  # of the numbers written

    def __post_init__(self) -> None:
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"heat map {self.title!r}: values must have one row per name and one number per column")

    def share(self, value: float) -> float:
        """How dark a value is drawn, in [0, 1].

        >>> HeatMap("t", ("a",), ("b", "c"), ((1.0, 4.0),)).share(1.0)
        0.25
        """
        known = [number for row in self.values for number in row if number is not None]
        high = self.high if self.high is not None else max(known, default=0.0)
        return min(max(value / high, 0.0), 1.0) if high > 0 else 0.0


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, and the cells of the benchmark behind them."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel | HeatMap, ...]
    results: tuple[CellResult, ...] = ()

    @property
    def legend(self) -> list[Series]:
        """One series of each name, in order; empty if there is only one. Dots are explained by their panel's title."""
        series = [s for panel in self.panels if isinstance(panel, Panel) for s in panel.series if s.kind != "dots"]
        found = {s.label: s for s in series}
        return list(found.values()) if len(found) > 1 else []


def seconds(moments: Iterable[datetime]) -> tuple[float, ...]:
    """Moments as x values of a time axis, which shows them in the wall-clock time of the ``datetime`` objects.

    >>> seconds([datetime(1970, 1, 1, 0, 1)])
    (60.0,)
    """
    return tuple(moment.replace(tzinfo=UTC).timestamp() for moment in moments)


def thinned(x: npt.ArrayLike, y: npt.ArrayLike, most: int = 300) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most ``most`` of the points, evenly picked, including the first and the last.

    >>> thinned(range(1000), range(1000), most=3)
    ((0.0, 500.0, 999.0), (0.0, 500.0, 999.0))
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) > most:
        picked = np.round(np.linspace(0, len(xs) - 1, most)).astype(int)
        xs, ys = xs[picked], ys[picked]
    return tuple(xs.tolist()), tuple(ys.tolist())


def mean_filtered(values: npt.ArrayLike, width: int) -> npt.NDArray[np.float64]:
    """The mean over a window of ``width`` values around each, shorter at the ends; NaN is left out.

    >>> mean_filtered([0, 3, 6, 0], 3).tolist()
    [1.5, 3.0, 3.0, 3.0]
    """
    given = np.asarray(values, float)
    known = np.isfinite(given)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, given, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    start = np.maximum(np.arange(len(given)) - width // 2, 0)
    end = np.minimum(np.arange(len(given)) + (width + 1) // 2, len(given))
    number = counts[end] - counts[start]
    return np.where(number > 0, (sums[end] - sums[start]) / np.maximum(number, 1), np.nan)


def ends_alike(panels: Iterable[Panel | HeatMap]) -> str:
    """A sentence on lines of a panel that end at the same printed value, ``""`` if none do.

    >>> lines = [Series(name, (0.0, 1.0), (start, 83.41), 0) for name, start in (("with", 1.0), ("without", 2.0))]
    >>> ends_alike([Panel("t", "x", "y", tuple(lines))])
    'with and without end at the same value (83.4).'
    """
    told = []
    titled = [panel for panel in panels if isinstance(panel, Panel)]
    for panel in titled:
        ends: dict[str, list[str]] = {}
        for series in panel.series:
            if series.kind == "line" and series.y and np.isfinite(series.y[-1]):
                ends.setdefault(f"{series.y[-1]:.1f}", []).append(series.label)
        where = f"{panel.title}: " if len(titled) > 1 else ""
        told += [f"{where}{_listed(names)} end at the same value ({y})." for y, names in ends.items() if len(names) > 1]
    return " ".join(told)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
