"""Figures as values: what is drawn, not how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from grotta.bench.store.results import CellResult

Kind = Literal["line", "marked", "dots", "bubbles"]
PALETTE = 10  # colours that a reader can tell apart, each with its own dashes


@dataclass(frozen=True)
class Series:
    """A named sequence of points.

    Attributes:
        label: its name in the legend.
        x, y: the points.
        color: 0 to 9.
        kind: a ``line``, a line ``marked`` at its points, ``dots`` alone, or ``bubbles`` whose areas are ``sizes``.
        sizes: in [0, 1], for bubbles.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    color: int
    kind: Kind = "line"
    sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or (self.kind == "bubbles" and len(self.sizes) != len(self.x)):
            raise ValueError(f"series {self.label!r}: x, y and sizes must be of one length")
        if not 0 <= self.color < PALETTE:
            raise ValueError(f"series {self.label!r}: color must be in 0..{PALETTE - 1}, got {self.color}")


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        x_label, y_label: of the axes.
        series: what is drawn, the first at the bottom.
        log_x: whether the x axis is logarithmic.
        y_range: from and to; from the data if left out.
        sections: where named parts of the x axis begin, such as domains.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    y_range: tuple[float, float] | None = None
    sections: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, and the cells of the benchmark behind them."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    results: tuple[CellResult, ...] = ()

    @property
    def legend(self) -> list[Series]:
        """One series of each name, in order; empty if there is only one. What dots show, their panel's title says."""
        found = {s.label: s for panel in self.panels for s in panel.series if s.kind != "dots"}
        return list(found.values()) if len(found) > 1 else []


def thinned(x: npt.ArrayLike, y: npt.ArrayLike, most: int = 300) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most ``most`` of the points, evenly picked, the first and the last among them.

    >>> thinned(range(1000), range(1000), most=3)
    ((0.0, 500.0, 999.0), (0.0, 500.0, 999.0))
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) > most:
        picked = np.round(np.linspace(0, len(xs) - 1, most)).astype(int)
        xs, ys = xs[picked], ys[picked]
    return tuple(xs.tolist()), tuple(ys.tolist())


def mean_filtered(values: npt.ArrayLike, width: int) -> npt.NDArray[np.float64]:
    """The mean over a window of ``width`` values around each, shorter at the ends; NaN counts as nothing.

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


def colors_of(labels: Sequence[str]) -> dict[str, int]:
    """A colour for each label, in turn."""
    return {label: index % PALETTE for index, label in enumerate(dict.fromkeys(labels))}
