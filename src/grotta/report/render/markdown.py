"""A report in GitHub's Markdown."""

from collections.abc import Sequence

from grotta._version import __version__
from grotta.report.command import command
from grotta.report.document import CELLS, SOURCES, WHICH_ERROR, Block, Listing, NamedCell, Report
from grotta.report.figure import Figure
from grotta.report.labels import mean_error
from grotta.report.render.notation import beside, footnotes, gain, item, number, row_name
from grotta.report.table import Cell, Table


def report_markdown(report: Report, figure_directory: str) -> str:
    """The report in GitHub's Markdown; its figures are files in ``figure_directory``."""
    legend = "Errors in per cent, lower is better: **best**, <ins>second</ins>."
    parts = [f"# {report.title}", f"{legend} {WHICH_ERROR}"]
    if report.warnings:
        parts.append("\n".join(["> **Warnings**", ">", *(f"> - {warning}" for warning in report.warnings)]))
    for section in report.sections:
        parts += [f"## {section.heading}", *([section.intro] if section.intro else [])]
        blocks = [_block(block, figure_directory).rstrip("\n") for block in section.blocks]
        parts += [text.removeprefix(f"**{section.title}**\n\n") for text in blocks]
    parts += [f"## {SOURCES}", _listing(report.used)]
    parts += ["## All cells", CELLS, _cells(report.cells), f"Made by grotta {__version__}."]
    return "\n\n".join(parts) + "\n"


def to_markdown(table: Table) -> str:
    """The table in GitHub's Markdown: best bold, second underlined, then the gain, then the paper's in brackets."""
    lines = [
        f"| {' | '.join((table.header, *table.heads))} |",
        f"|:---|{'---:|' * len(table.heads)}",
        *(f"| {' | '.join((row_name(row), *map(_markdown_cell, row.cells)))} |" for row in table.rows),
    ]
    notes = [f"- {note}" for note in footnotes(table)]
    return "\n".join([f"**{table.title}**", "", *lines, *([""] if notes else []), *notes]) + "\n"


def _block(block: Block, figure_directory: str) -> str:
    if isinstance(block, Table):
        return to_markdown(block)
    if isinstance(block, Figure):
        return f"**{block.title}**\n\n![{block.title}]({figure_directory}/{block.name}.svg)\n\n{block.caption}"
    return _listing(block)


def _listing(listing: Listing) -> str:
    lines = [
        f"| {' | '.join(listing.heads)} |",
        f"|{''.join('---:|' if right else '---|' for right in listing.numeric)}",
        *(f"| {' | '.join(item(value, listing.decimals) for value in row)} |" for row in listing.rows),
    ]
    notes = [f"- {note}" for note in listing.notes]
    return "\n".join([f"**{listing.title}**", "", *lines, *([""] if notes else []), *notes])


def _cells(cells: Sequence[NamedCell]) -> str:
    heads = "| Cell | Error (%), mean over domains | Error (%) of all images | Stream | Command |"
    lines = [heads, "|---|---:|---:|---|---|"]
    for cell in cells:
        r = cell.result
        errors = f"{mean_error(r):.2f} | {r.error:.2f}"
        lines.append(f"| {r.spec.id} | {errors} | {r.stream_hash[:16]} | `{command(r.spec)}` |")
    return "\n".join(lines)


def _markdown_cell(cell: Cell) -> str:
    text = number(cell).replace("*", r"\*")
    text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>", "": text}[cell.rank]
    if cell.gain is not None:
        text += f" {gain(cell)}".replace("*", r"\*")
    return f"{text} ({beside(cell)})".strip() if beside(cell) else text
