"""Figures as SVG: text only, no library, colours by CSS variables so that they follow the reader's light or dark."""

import math
from html import escape
from itertools import pairwise

from grotta.report.figure import Figure, Panel, Series
from grotta.report.render.axes import Axis, fit
from grotta.report.render.section_names import NAME_SIZE, Names, section_names

WIDTH, HEIGHT = 420, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 38, 46
_HEADING = 20
_LABEL, _TICK_CHAR = 26, 7  # room for the upright label of the y axis and for each character of its numbers
_LEGEND_LINE, _LEGEND_CHAR, _LEGEND_SWATCH = 20, 7.2, 30

LIGHT = ("#6b7280", "#8d5a3b", "#b8860b", "#d9620c", "#7c3aed", "#0d8276", "#be3a85", "#4d7c0f", "#1d6fd8", "#d11f1f")
DARK = ("#9ca3af", "#c9a184", "#e3b341", "#fb923c", "#b794f6", "#2dd4bf", "#f472b6", "#a3d65c", "#6cb0ff", "#ff6b6b")
_DASHES = ("6 4", "", "2 3", "8 3 2 3", "", "4 2", "10 4", "2 2 6 2", "", "")


def palette(colors: tuple[str, ...], ink: str, muted: str, grid: str, paper: str) -> str:
    """CSS variables of one theme."""
    series = "".join(f"--s{i}:{color};" for i, color in enumerate(colors))
    return f"{series}--ink:{ink};--muted:{muted};--grid:{grid};--paper:{paper};"


LIGHT_VARIABLES = palette(LIGHT, ink="#1b1f24", muted="#57606a", grid="#d8dee4", paper="#ffffff")
DARK_VARIABLES = palette(DARK, ink="#e6edf3", muted="#9aa5b1", grid="#30363d", paper="#0d1117")

FIGURE_CSS = (
    "".join(
        f".fig .l{i}{{stroke:var(--s{i});stroke-dasharray:{dash or 'none'}}}.fig .f{i}{{fill:var(--s{i})}}"
        for i, dash in enumerate(_DASHES)
    )
    + ".fig path{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    ".fig .l9{stroke-width:2.6}"
    ".fig .dots{stroke-width:1.8;stroke-linecap:round;stroke-dasharray:none;opacity:.55}"
    ".fig .bubble{fill-opacity:.55;stroke:var(--paper);stroke-width:.6}"
    ".fig .grid{stroke:var(--grid);stroke-width:1;stroke-dasharray:none}"
    ".fig .section{stroke:var(--grid);stroke-width:1;stroke-dasharray:2 3}"
    ".fig .axis{stroke:var(--muted);stroke-width:1;stroke-dasharray:none}"
    ".fig text{font:12px system-ui,sans-serif;fill:var(--muted)}"
    ".fig .title{font-weight:600;font-size:13px;fill:var(--ink)}"
    f".fig .small{{font-size:{NAME_SIZE}px}}"
)


def panel_svg(panel: Panel, name: str, place: tuple[float, float] | None = None, *, heading: bool = True) -> str:
    """One panel as an ``<svg>`` element, under its title if it needs a ``heading``; at ``place`` inside another one."""
    y_axis = _y_axis(panel)
    x_axis = _x_axis(panel, y_axis)
    left, rise = x_axis.start, panel_height(panel) - HEIGHT
    position = "" if place is None else f' x="{place[0]:g}" y="{place[1]:g}" width="{WIDTH}" height="{HEIGHT + rise}"'
    names = ", ".join(series.label for series in panel.series)
    top = (0 if heading else _HEADING) - rise
    return "".join(
        (
            f'<svg class="fig" viewBox="0 {top} {WIDTH} {HEIGHT - top}" role="img" aria-labelledby="{name}-t {name}-d"'
            f"{position}>",
            f'<title id="{name}-t">{escape(panel.title)}</title>',
            f'<desc id="{name}-d">{escape(f"{panel.y_label} against {panel.x_label}: {names}")}</desc>',
            f'<text class="title" x="{left:g}" y="{17 - rise}">{escape(panel.title)}</text>' if heading else "",
            _frame(panel, x_axis, y_axis),
            *(_series(series, x_axis, y_axis) for series in panel.series),
            "</svg>",
        )
    )


def panel_height(panel: Panel) -> int:
    """How high a panel is drawn under its title: names of sections that stand upright need room above the axes."""
    return HEIGHT + _names(panel, _x_axis(panel, _y_axis(panel))).rise


def swatch_svg(series: Series) -> str:
    """The mark of a series in a legend."""
    return (
        f'<svg class="fig" viewBox="0 0 24 10" width="24" height="10" aria-hidden="true">{_swatch(series, 0, 5)}</svg>'
    )


def figure_svg(figure: Figure) -> str:
    """A figure as one file of its own, with its panels in a grid and its legend below; follows light and dark."""
    across = min(2, len(figure.panels))
    down = math.ceil(len(figure.panels) / across)
    line = max(map(panel_height, figure.panels))
    legend, rows = _legend(figure.legend, across * WIDTH, down * line)
    height = down * line + rows * _LEGEND_LINE + (10 if rows else 0)
    panels = (
        panel_svg(panel, f"{figure.name}-{i}", (i % across * WIDTH, i // across * line))
        for i, panel in enumerate(figure.panels)
    )
    return (
        f'<svg class="fig" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across * WIDTH} {height}" '
        f'width="{across * WIDTH}" height="{height}" role="img" aria-label="{escape(figure.title, quote=True)}">'
        f"<style>:root{{{LIGHT_VARIABLES}}}@media(prefers-color-scheme:dark){{:root{{{DARK_VARIABLES}}}}}"
        f"{FIGURE_CSS}</style>"
        f'<rect width="100%" height="100%" style="fill:var(--paper)"/>{"".join(panels)}{legend}</svg>\n'
    )


def _y_axis(panel: Panel) -> Axis:
    if panel.y_range is not None:
        return Axis(*panel.y_range, HEIGHT - _BOTTOM, _TOP)
    return fit([v for s in panel.series for v in s.y], HEIGHT - _BOTTOM, _TOP, margin=0.06)


def _x_axis(panel: Panel, y_axis: Axis) -> Axis:
    left = max(_LEFT, _LABEL + _TICK_CHAR * max((len(text) for _, text in y_axis.ticks()), default=0))
    values = [v for s in panel.series for v in s.x]
    return fit(values, left, WIDTH - _RIGHT, log=panel.log_x, margin=0.04 * panel.log_x)


def _names(panel: Panel, x_axis: Axis) -> Names:
    starts = [max(x_axis.place(start), x_axis.start) for start, _ in panel.sections]
    return section_names([name for _, name in panel.sections], starts, x_axis.end)


def _frame(panel: Panel, x_axis: Axis, y_axis: Axis) -> str:
    left, bottom, right = x_axis.start, HEIGHT - _BOTTOM, x_axis.end
    parts = []
    for value, text in y_axis.ticks():
        y = y_axis.place(value)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for value, text in x_axis.ticks():
        x = x_axis.place(value)
        parts.append(f'<path class="axis" d="M{x:.1f} {bottom}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{text}</text>')
    parts.append(_sections(panel, x_axis, bottom))
    parts.append(f'<path class="axis" d="M{left} {bottom}H{right}"/>')
    middle_x, middle_y = (left + right) / 2, (_TOP + bottom) / 2
    parts.append(f'<text x="{middle_x:g}" y="{HEIGHT - 10}" text-anchor="middle">{escape(panel.x_label)}</text>')
    parts.append(
        f'<text transform="translate(13 {middle_y:g}) rotate(-90)" text-anchor="middle">{escape(panel.y_label)}</text>'
    )
    return "".join(parts)


def _sections(panel: Panel, x_axis: Axis, bottom: float) -> str:
    """Dashed lines where sections begin, and their names above the axes."""
    names = _names(panel, x_axis)
    parts = []
    for start in names.starts:
        if start > x_axis.start + 0.5:
            parts.append(f'<path class="section" d="M{start:.1f} {_TOP - 10}V{bottom}"/>')
    for name, full, x in names.placed:
        lying = f'x="{x:.1f}" y="{_TOP - 4}"'
        turn = f'transform="translate({x:.1f} {_TOP - 6}) rotate(-90)"' if names.upright else lying
        title = f"<title>{escape(full)}</title>" if name != full else ""
        parts.append(f'<text class="small" {turn}>{escape(name)}{title}</text>')
    return "".join(parts)


def _series(series: Series, x_axis: Axis, y_axis: Axis) -> str:
    points = [(x_axis.place(x), y_axis.place(y)) if math.isfinite(y) else None for x, y in zip(series.x, series.y)]
    if series.kind == "dots":
        path = "".join(f"M{p[0]:.1f} {p[1]:.1f}h0" for p in points if p)
        return f'<path class="dots l{series.color}" d="{path}"><title>{escape(series.label)}</title></path>'
    if series.kind == "bubbles":
        drawn = zip(points, series.x, series.y, series.sizes)
        return "".join(_bubble(series, p, x, y, size) for p, x, y, size in drawn if p)
    line = f'<path class="l{series.color}" d="{_polyline(points)}"><title>{escape(series.label)}</title></path>'
    if series.kind == "line":
        return line
    return line + "".join(
        f'<circle class="f{series.color}" cx="{p[0]:.1f}" cy="{p[1]:.1f}" r="3">'
        f"<title>{escape(series.label)}: {x:g} → {y:.1f}</title></circle>"
        for p, x, y in zip(points, series.x, series.y)
        if p
    )


def _bubble(series: Series, place: tuple[float, float], x: float, y: float, size: float) -> str:
    return (
        f'<circle class="bubble f{series.color}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{2 + 9 * size**0.5:.1f}">'
        f"<title>{escape(series.label)}: {x:g} → {y:.3f}, size {size:.3f}</title></circle>"
    )


def _polyline(points: list[tuple[float, float] | None]) -> str:
    """A path through the points, broken where one is missing."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"] if points and points[0] else []
    for before, point in pairwise(points):
        if point:
            parts.append(f"{'L' if before else 'M'}{point[0]:.1f} {point[1]:.1f}")
    return "".join(parts)


def _swatch(series: Series, x: float, y: float) -> str:
    if series.kind in ("line", "marked"):
        return f'<path class="l{series.color}" d="M{x:g} {y:g}h24"/>'
    return f'<circle class="f{series.color}" cx="{x + 12:g}" cy="{y:g}" r="4"/>'


def _legend(entries: list[Series], width: float, top: float) -> tuple[str, int]:
    """Entries in lines, each as wide as its text is guessed to be."""
    parts, x, row = [], float(_LEFT), 0
    for series in entries:
        needed = _LEGEND_SWATCH + len(series.label) * _LEGEND_CHAR + 16
        if x + needed > width and x > _LEFT:
            x, row = float(_LEFT), row + 1
        y = top + row * _LEGEND_LINE + 10
        parts.append(_swatch(series, x, y))
        parts.append(f'<text x="{x + _LEGEND_SWATCH:g}" y="{y + 4:g}">{escape(series.label)}</text>')
        x += needed
    return "".join(parts), row + 1 if entries else 0
