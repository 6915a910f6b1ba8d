"""Figures as SVG: Python finds the places, ``assets/figure.svg`` writes them down. Colours are CSS variables, so that
figures follow the reader's light or dark theme.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from grotta.report.figure import PALETTE, Figure, HeatMap, Panel, Series
from grotta.report.render.axes import Axis, Ticks, fit
from grotta.report.render.templates import template

WIDTH, HEIGHT = 420, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 38, 46
_HEADING = 20
_CHARACTER = 7  # room for a character of a label on the left of a panel
_NAME_LINE, _LONGEST_NAME = 14, 22  # between upright names of sections, and their characters
_LONGEST_ROW = 32  # characters of the name of a row in a heat map
_LEGEND_LINE, _LEGEND_COLUMN = 20, WIDTH // 2
_HEAT_ROW, _HEAT_COLUMN = 24, 34

LIGHT = ("#6b7280", "#8d5a3b", "#b8860b", "#d9620c", "#7c3aed", "#0d8276", "#be3a85", "#4d7c0f", "#1d6fd8", "#d11f1f")
DARK = ("#9ca3af", "#c9a184", "#e3b341", "#fb923c", "#b794f6", "#2dd4bf", "#f472b6", "#a3d65c", "#6cb0ff", "#ff6b6b")
_DASHES = ("6 4", "", "2 3", "8 3 2 3", "", "4 2", "10 4", "2 2 6 2", "", "")
_LATER_DASHES = ("1 3", "12 3 3 3", "3 6")  # of repeated colours


def palette(colors: tuple[str, ...], ink: str, muted: str, grid: str, paper: str) -> str:
    """CSS variables of one theme."""
    series = "".join(f"--s{i}:{color};" for i, color in enumerate(colors))
    return f"{series}--ink:{ink};--muted:{muted};--grid:{grid};--paper:{paper};"


LIGHT_VARIABLES = palette(LIGHT, ink="#1b1f24", muted="#57606a", grid="#d8dee4", paper="#ffffff")
DARK_VARIABLES = palette(DARK, ink="#e6edf3", muted="#9aa5b1", grid="#30363d", paper="#0d1117")


@dataclass(frozen=True)
class Mark:
    """A point of a series as it is drawn, with its tooltip."""

    x: float
    y: float
    radius: float
    words: str


@dataclass(frozen=True)
class Drawn:
    """A series as it is drawn: a path, marks, or both."""

    series: Series
    path: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Square:
    """A number of a heat map as it is drawn."""

    x: float
    y: float
    share: float
    text: str
    words: str


def figure_css() -> str:
    """The style sheet of figures, without the colours of a theme."""
    return template("figure.css").render(dashes=_DASHES, later_dashes=_LATER_DASHES)


def color_class(series: Series, letter: str) -> str:
    """The classes of a series: ``l`` for lines, ``f`` for filled marks.

    >>> color_class(Series("a", (), (), 3), "l"), color_class(Series("a", (), (), 13), "l")
    ('l3', 'l3 again0')
    """
    turn, color = divmod(series.color, PALETTE)
    return f"{letter}{color}" + (f" again{(turn - 1) % len(_LATER_DASHES)}" if turn else "")


def panel_svg(
    panel: Panel | HeatMap, name: str, place: tuple[float, float] | None = None, *, heading: bool = True
) -> Markup:
    """One panel as an ``<svg>`` element, under its title if it needs a ``heading``; at ``place`` inside another one."""
    content = _heat_map(panel) if isinstance(panel, HeatMap) else _axes(panel)
    height = panel_height(panel)
    top = HEIGHT - height if isinstance(panel, Panel) else 0
    shown = {
        "top": top + (0 if heading else _HEADING),
        "end": top + height,
        "width": panel_width(panel),
        "height": height,
    }
    source = template("figure.svg").make_module({"color_class": color_class})
    return Markup(source.panel(panel, name, place, heading, {**shown, "title_y": top + 17}, content))  # type: ignore[attr-defined]


def panel_height(panel: Panel | HeatMap) -> int:
    """The height of a panel: names that read upwards need room above the axes."""
    if isinstance(panel, HeatMap):
        return _TOP + _rise(panel.columns) + _HEAT_ROW * len(panel.rows) + 10
    return HEIGHT + _rise(name for _, name in panel.sections)


def panel_width(panel: Panel | HeatMap) -> int:
    """The width of a panel: a heat map has room for the number in each column."""
    if isinstance(panel, HeatMap):
        return max(WIDTH, _heat_left(panel) + _HEAT_COLUMN * len(panel.columns) + _RIGHT)
    return WIDTH


def swatch_svg(series: Series) -> Markup:
    """The mark of a series in a legend."""
    source = template("figure.svg").make_module({"color_class": color_class})
    return Markup(source.swatch(series))  # type: ignore[attr-defined]


def figure_svg(figure: Figure) -> str:
    """A figure as one file of its own, with its panels in a grid and its legend below; follows light and dark."""
    across = min(2, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    line, width = max(map(panel_height, figure.panels)), max(map(panel_width, figure.panels))
    columns = across * width // _LEGEND_COLUMN
    rows = math.ceil(len(figure.legend) / columns)
    legend = [
        (_LEFT + i % columns * _LEGEND_COLUMN, down * line + i // columns * _LEGEND_LINE + 10, series)
        for i, series in enumerate(figure.legend)
    ]
    panels = [
        panel_svg(panel, f"{figure.name}-{i}", (i % across * width, i // across * line))
        for i, panel in enumerate(figure.panels)
    ]
    size = {"width": across * width, "height": down * line + rows * _LEGEND_LINE + (10 if rows else 0)}
    style = f":root{{{LIGHT_VARIABLES}}}@media(prefers-color-scheme:dark){{:root{{{DARK_VARIABLES}}}}}{figure_css()}"
    return template("figure.svg").render(
        figure=figure, panels=panels, legend=legend, style=Markup(style), color_class=color_class, **size
    )


def _axes(panel: Panel) -> dict[str, object]:
    y_axis = _y_axis(panel)
    left = max(_LEFT, 26 + _CHARACTER * max((len(text) for _, text in y_axis.ticks()), default=0))
    x_axis = fit(
        [v for s in panel.series for v in s.x],
        left,
        WIDTH - _RIGHT,
        scale=panel.x_scale,
        margin=0.04 * (panel.x_scale == "log"),
    )
    x_ticks = panel.x_ticks or x_axis.ticks(4 if panel.x_scale == "time" else 5)
    return {
        "left": left,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": HEIGHT - _BOTTOM,
        "x_ticks": _placed(x_ticks, x_axis),
        "y_ticks": _placed(y_axis.ticks(), y_axis),
        "boundaries": [x for start, _ in panel.sections if (x := x_axis.place(start)) > left + 0.5],
        "names": _section_names(panel, x_axis),
        "drawn": [_drawn(series, x_axis, y_axis) for series in panel.series],
    }


def _y_axis(panel: Panel) -> Axis:
    if panel.y_range is not None:
        return Axis(*panel.y_range, HEIGHT - _BOTTOM, _TOP)
    return fit([v for s in panel.series for v in s.y], HEIGHT - _BOTTOM, _TOP, margin=0.06)


def _placed(ticks: Iterable[tuple[float, str]], axis: Axis) -> Ticks:
    return [(axis.place(value), text) for value, text in ticks if axis.low <= value <= axis.high]


def _section_names(panel: Panel, x_axis: Axis) -> list[tuple[float, str, str]]:
    """The names of sections, reading upwards near their middles; if there is no room for all, evenly picked ones."""
    starts = [max(x_axis.place(start), x_axis.start) for start, _ in panel.sections]
    middles = [(left + right) / 2 for left, right in zip(starts, [*starts[1:], x_axis.end])]
    most = int((x_axis.end - x_axis.start) // _NAME_LINE)
    picked = range(0, len(middles), math.ceil(len(middles) / most) or 1)
    places = spread([middles[i] for i in picked], x_axis.start + _NAME_LINE / 2, x_axis.end - _NAME_LINE / 2)
    return [(x, _cut(panel.sections[i][1]), panel.sections[i][1]) for i, x in zip(picked, places)]


def spread(wanted: list[float], low: float, high: float) -> list[float]:
    """Rising places in [low, high], a line apart or more, near those wanted: pushed right, then back from the end.

    >>> spread([10.0, 11.0, 50.0], 0.0, 60.0), spread([57.0, 58.0], 0.0, 60.0)
    ([10.0, 24.0, 50.0], [46.0, 60.0])
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + _NAME_LINE if places else low))
    limit = high
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - _NAME_LINE
    return places


def _cut(name: str, longest: int = _LONGEST_NAME) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _rise(names: Iterable[str]) -> int:
    return max((_CHARACTER * len(_cut(name)) - 10 for name in names), default=0)


def _drawn(series: Series, x_axis: Axis, y_axis: Axis) -> Drawn:
    points = [(x_axis.place(x), y_axis.place(y)) if math.isfinite(y) else None for x, y in zip(series.x, series.y)]
    if series.kind == "dots":
        return Drawn(series, "".join(f"M{p[0]:.1f} {p[1]:.1f}h0" for p in points if p), ())
    sizes = series.sizes if series.kind == "bubbles" else [None] * len(points)
    marks = tuple(_mark(series, p, x, y, size) for p, x, y, size in zip(points, series.x, series.y, sizes) if p)
    if series.kind == "bubbles":
        return Drawn(series, "", marks)
    return Drawn(series, _polyline(points), marks if series.kind == "marked" else ())


def _mark(series: Series, place: tuple[float, float], x: float, y: float, size: float | None) -> Mark:
    if size is None:
        return Mark(*place, 3, f"{series.label}: {x:g} → {y:.1f}")
    return Mark(*place, 2 + 9 * size**0.5, f"{series.label}: {x:g} → {y:.3f}, size {size:.3f}")


def _polyline(points: list[tuple[float, float] | None]) -> str:
    """A path through the points, broken where one is missing."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"] if points and points[0] else []
    for before, point in pairwise(points):
        if point:
            parts.append(f"{'L' if before else 'M'}{point[0]:.1f} {point[1]:.1f}")
    return "".join(parts)


def _heat_left(panel: HeatMap) -> int:
    return max(_LEFT, 12 + _CHARACTER * max((len(_cut(name, _LONGEST_ROW)) for name in panel.rows), default=0))


def _heat_map(panel: HeatMap) -> dict[str, object]:
    left = _heat_left(panel)
    top = _TOP + _rise(panel.columns)
    width = (panel_width(panel) - _RIGHT - left) / max(len(panel.columns), 1)
    squares = [
        Square(
            left + j * width,
            top + i * _HEAT_ROW,
            panel.share(value),
            f"{value:.{panel.decimals}f}",
            f"{row}, {column}: {value:.{panel.decimals}f}",
        )
        for i, (row, values) in enumerate(zip(panel.rows, panel.values))
        for j, (column, value) in enumerate(zip(panel.columns, values))
        if value is not None
    ]
    return {
        "left": left,
        "cell_width": width,
        "cell_height": _HEAT_ROW,
        "squares": squares,
        "rows": [(top + (i + 0.5) * _HEAT_ROW, _cut(name, _LONGEST_ROW), name) for i, name in enumerate(panel.rows)],
        "names": [(left + (j + 0.5) * width, _cut(name), name) for j, name in enumerate(panel.columns)],
        "names_bottom": top - 6,
    }
