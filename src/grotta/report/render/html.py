"""A report as one HTML page that needs nothing else: no network, no other file."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from grotta._version import __version__
from grotta.bench.store.results import CellResult
from grotta.report.command import command
from grotta.report.figure import Figure
from grotta.report.render.html_table import framed, head_html, to_html
from grotta.report.render.svg import DARK_VARIABLES, FIGURE_CSS, LIGHT_VARIABLES, panel_svg, swatch_svg
from grotta.report.sections.content import CELLS, SOURCES, WHICH_ERROR, Block, Listing, Report, Section, used_listing
from grotta.report.sections.names import setup_names
from grotta.report.sections.tables import both_errors, label_shift, plural, row_key, row_label, seeds, setup_of
from grotta.report.table import Table

_LIGHT = "--card:#f6f8fa;--link:#0550ae;--gain:#b42318;--warn:#fff8e1;--warn-edge:#d4a72c;"
_DARK = "--card:#161b22;--link:#79b8ff;--gain:#ff8a80;--warn:#2b2410;--warn-edge:#7d6420;"
# The page may not fetch anything, whatever is in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def report_html(report: Report) -> str:
    """The whole page; the same bytes for the same report."""
    parts = [
        f"<header><h1>{escape(report.title)}</h1>{_lead(report.results)}</header>",
        _contents(report),
        _warnings(report.warnings),
        "<main>",
        *map(_section, report.sections),
        _sources(report.results),
        _cells(report.results),
        "</main>",
        f"<footer>Made by grotta {escape(__version__)}.</footer>",
        '<p id="status" class="hidden" role="status"></p>',
        '<dialog id="behind" aria-label="What is behind this number"><div id="behind-cells"></div>'
        '<form method="dialog"><button class="button">Close</button></form></dialog>',
    ]
    style = (
        f":root{{{LIGHT_VARIABLES}{_LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK_VARIABLES}{_DARK}}}}}"
        f"{FIGURE_CSS}\n{_asset('report.css')}"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(report.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + f"\n<script>{_asset('report.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("grotta.report").joinpath("assets", name).read_text(encoding="utf-8")


def _lead(results: Sequence[CellResult]) -> str:
    datasets = ", ".join(dict.fromkeys(result.spec.dataset for result in results))
    images = sum(result.images for result in results)
    return (
        f'<p class="lead">{plural(len(results), "cell")}, {images:,} images, on {escape(datasets) or "no data"}. '
        "Errors in per cent, lower is better: <strong>best</strong>, <u>second</u>. Choose a number to see the command "
        f"and the stream behind it, a column's head to sort by it. {escape(WHICH_ERROR)}</p>"
    )


def _contents(report: Report) -> str:
    titles = Counter(section.title for section in report.sections)
    links = [(s.name, s.title if titles[s.title] == 1 else s.heading) for s in report.sections]
    links += [("sources", SOURCES), ("cells", "All cells")]
    listed = "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in links)
    return f'<nav aria-label="Contents"><ol>{listed}</ol></nav>'


def _warnings(warnings: Iterable[str]) -> str:
    listed = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    return f'<section class="warn" id="warnings"><h2>Warnings</h2><ul>{listed}</ul></section>' if listed else ""


def _section(section: Section) -> str:
    blocks = "\n".join(map(_block, section.blocks))
    return (
        f'<section id="{escape(section.name)}"><h2>{escape(section.heading)}</h2>\n'
        f"<p>{escape(section.intro)}</p>\n{blocks}</section>"
    )


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return to_html(block)
    return _figure(block) if isinstance(block, Figure) else _listing(block)


def _figure(figure: Figure) -> str:
    name = escape(figure.name)
    heading = len(figure.panels) > 1
    panels = "".join(panel_svg(panel, f"{name}-{i}", heading=heading) for i, panel in enumerate(figure.panels))
    legend = "".join(f"<li>{swatch_svg(series)}{escape(series.label)}</li>" for series in figure.legend)
    legend = f'<ul class="legend">{legend}</ul>' if legend else ""
    return (
        f'<section class="block" id="{name}"><h3>{escape(figure.title)}</h3><figure><div class="panels">{panels}</div>'
        f"{legend}<figcaption>{escape(figure.caption)} {_behind(figure.results)}</figcaption></figure></section>"
    )


def _behind(results: Sequence[CellResult]) -> str:
    """A link to all cells behind a figure."""
    ids = list(dict.fromkeys(result.spec.id for result in results))
    if not ids:
        return ""
    return f'<a href="#cell-{ids[0]}" data-cells="{" ".join(ids)}">{plural(len(ids), "cell")} behind it</a>'


def _listing(listing: Listing) -> str:
    rows = "".join(f"<tr>{''.join(_item(v, i, listing.decimals) for i, v in enumerate(r))}</tr>" for r in listing.rows)
    grid = f"<table>{head_html(listing.heads)}<tbody>{rows}</tbody></table>"
    return framed(listing.name, listing.title, grid, list(listing.notes))


def _item(value: str | float | None, place: int, decimals: int) -> str:
    tag = 'th scope="row"' if place == 0 else "td"
    if value is None or isinstance(value, str):
        text = escape(value or "")
        shown = f'<span class="name">{text}</span>' if place == 0 else text
        return f'<{tag} class="text" data-value="{text}">{shown}</{tag[:2]}>'
    return f'<{tag} data-value="{value!r}">{value:,.{decimals}f}</{tag[:2]}>'


def _sources(results: Sequence[CellResult]) -> str:
    return f'<section id="sources"><h2>{SOURCES}</h2>\n{_listing(used_listing(results))}</section>'


def _cells(results: Sequence[CellResult]) -> str:
    names = setup_names(results)
    listed = "\n".join(_cell(result, names[setup_of(result)]) for result in results)
    return (
        f'<section id="cells"><h2>All cells</h2>\n<p>{CELLS}</p>\n'
        f"<details><summary>{plural(len(results), 'cell')}</summary>\n{listed}</details></section>"
    )


def _cell(result: CellResult, where: str) -> str:
    spec = result.spec
    domains = ", ".join(f"{domain} {error:.1f}" for domain, error in result.domain_errors.items())
    speed = f"{result.images_per_second:,.0f} images a second, {result.peak_memory_mb:,.0f} MB at most"
    facts = {
        "Command": f"<code>{escape(command(spec))}</code>",
        "Stream": f"<code>{escape(result.stream_hash)}</code>",
        "Pictures": f"<code>{escape(result.data_fingerprint)}</code>" if result.data_fingerprint else "",
        "Errors by domain": escape(domains),
        "Data": escape(f"{spec.dataset}, {result.provenance}, {result.images:,} images, {result.classes} classes"),
        "Network": f"{escape(result.model)} <code>{escape(result.model_fingerprint[:16])}</code>",
        "Versions": escape(", ".join(f"{name} {version}" for name, version in result.versions.items())),
        "Time": escape(speed) if math.isfinite(result.seconds) else "",
        "Warnings": escape("; ".join(result.warnings)),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items() if text)
    what = f"{row_label(row_key(spec))[0]} on {where}, {label_shift(spec.stream, spec.gamma)}, {seeds(spec)}"
    summary = f"{what}: {both_errors(result)}"
    return f'<details id="cell-{spec.id}"><summary>{escape(summary)}</summary><dl>{listed}</dl></details>'
