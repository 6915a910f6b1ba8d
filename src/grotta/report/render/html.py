"""A report as one HTML page that needs no network and no other file; its template is ``assets/page.html``."""

from collections import Counter
from collections.abc import Sequence, Sized
from typing import Any

from markupsafe import Markup

from grotta._version import __version__
from grotta.bench.store.results import CellResult
from grotta.report.command import command
from grotta.report.document import CELLS, SOURCES, WHICH_ERROR, Report
from grotta.report.figure import Figure
from grotta.report.labels import both_errors, data_name, plural
from grotta.report.printed import AVERAGE
from grotta.report.render.notation import footnotes, gain, plain_number, signed
from grotta.report.render.svg import DARK_VARIABLES, LIGHT_VARIABLES, figure_css, panel_svg, swatch_svg
from grotta.report.render.templates import asset, template
from grotta.report.table import DECIMALS, Table

_LIGHT = "--card:#f6f8fa;--link:#0550ae;--gain:#b42318;--warn:#fff8e1;--warn-edge:#d4a72c;"
_DARK = "--card:#161b22;--link:#79b8ff;--gain:#ff8a80;--warn:#2b2410;--warn-edge:#7d6420;"


def report_html(report: Report) -> str:
    """The whole page; the same bytes for the same report."""
    style = (
        f":root{{{LIGHT_VARIABLES}{_LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK_VARIABLES}{_DARK}}}}}\n"
        f"{figure_css()}{asset('report.css')}"
    )
    return template("page.html").render(
        report=report,
        style=Markup(style),
        script=Markup(asset("report.js")),
        contents=_contents(report),
        datasets=", ".join(dict.fromkeys(data_name(result.spec.dataset) for result in report.results)),
        sources=SOURCES,
        about_cells=CELLS,
        which_error=WHICH_ERROR,
        version=__version__,
        **_WORDS,
    )


def _contents(report: Report) -> list[tuple[str, str]]:
    titles = Counter(section.title for section in report.sections)
    links = [(s.name, s.title if titles[s.title] == 1 else s.heading) for s in report.sections]
    return [*links, ("sources", SOURCES), ("cells", "All cells")]


def _count(cells: Sized) -> str:
    return plural(len(cells), "cell")


def _ids(results: Sequence[CellResult]) -> str:
    return " ".join(dict.fromkeys(result.spec.id for result in results))


def _by_domain(result: CellResult) -> str:
    return ", ".join(f"{domain} {error:.1f}" for domain, error in result.domain_errors.items())


def _versions(result: CellResult) -> str:
    return ", ".join(f"{name} {version}" for name, version in result.versions.items())


_WORDS: dict[str, Any] = {
    "average": AVERAGE,
    "both_errors": both_errors,
    "by_domain": _by_domain,
    "command": command,
    "count": _count,
    "data_name": data_name,
    "decimal": lambda value: f"{value:.{DECIMALS}f}",
    "footnotes": footnotes,
    "gain": gain,
    "ids": _ids,
    "is_figure": lambda block: isinstance(block, Figure),
    "is_table": lambda block: isinstance(block, Table),
    "panel_svg": panel_svg,
    "plain_number": plain_number,
    "signed": signed,
    "swatch_svg": swatch_svg,
    "versions": _versions,
}
