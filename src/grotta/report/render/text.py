"""A report as Markdown and as CSV."""

import csv
import io
import math
from collections.abc import Iterable, Sequence

from grotta._version import __version__
from grotta.bench.store.results import CellResult
from grotta.report.command import command
from grotta.report.figure import Figure
from grotta.report.render.markdown import to_markdown
from grotta.report.sections.content import CELLS, SOURCES, WHICH_ERROR, Block, Listing, Report, used_listing
from grotta.report.sections.tables import mean_error
from grotta.report.table import Table

_SPEC_COLUMNS = ("dataset", "gamma", "preset", "stream", "period", "batch_size", "stream_seed", "seed")
_ERRORS = ("error_mean_over_domains", "error_of_all_images")
CELL_COLUMNS = (
    *("cell", "row", *_SPEC_COLUMNS, "domains", *_ERRORS, "errors_by_domain", "stream_hash", "data_fingerprint"),
    *("model", "model_fingerprint", "provenance", "versions", "images_per_second", "peak_memory_mb", "command"),
)
LISTING_COLUMNS = ("listing", "line", "row", "column", "value")


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
    parts += [f"## {SOURCES}", _listing(used_listing(report.results))]
    parts += ["## All cells", CELLS, *_cells(report.results), f"Made by grotta {__version__}."]
    return "\n\n".join(parts) + "\n"


def cells_csv(results: Sequence[CellResult]) -> str:
    """All cells, a line each, with the command that runs it again."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CELL_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_cell_line, results))
    return text.getvalue()


def listings_csv(listings: Iterable[Listing]) -> str:
    """All listings in one CSV text, a line a value; numbers are not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(LISTING_COLUMNS)
    for listing in listings:
        for line, (first, *values) in enumerate(listing.rows, start=1):
            writer.writerows((listing.name, line, first, head, value) for head, value in zip(listing.heads[1:], values))
    return text.getvalue()


def _block(block: Block, figure_directory: str) -> str:
    if isinstance(block, Table):
        return to_markdown(block)
    if isinstance(block, Figure):
        return f"**{block.title}**\n\n![{block.title}]({figure_directory}/{block.name}.svg)\n\n{block.caption}"
    return _listing(block)


def _listing(listing: Listing) -> str:
    numeric = [any(isinstance(row[place], float) for row in listing.rows) for place in range(len(listing.heads))]
    lines = [
        f"| {' | '.join(listing.heads)} |",
        f"|{''.join('---:|' if right else '---|' for right in numeric)}",
        *(f"| {' | '.join(_item(value, listing.decimals) for value in row)} |" for row in listing.rows),
    ]
    notes = [f"- {note}" for note in listing.notes]
    return "\n".join([f"**{listing.title}**", "", *lines, *([""] if notes else []), *notes])


def _item(value: str | float | None, decimals: int) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.{decimals}f}"


def _cells(results: Sequence[CellResult]) -> list[str]:
    heads = "| Cell | Error (%), mean over domains | Error (%) of all images | Stream | Command |"
    lines = [heads, "|---|---:|---:|---|---|"]
    for r in results:
        errors = f"{mean_error(r):.2f} | {r.error:.2f}"
        lines.append(f"| {r.spec.id} | {errors} | {r.stream_hash[:16]} | `{command(r.spec)}` |")
    return ["\n".join(lines)]


def _cell_line(result: CellResult) -> dict[str, object]:
    spec = result.spec
    return {
        "cell": spec.id,
        "row": spec.label,
        **{name: getattr(spec, name) for name in _SPEC_COLUMNS},
        "domains": " ".join(spec.domains),
        "error_mean_over_domains": mean_error(result),
        "error_of_all_images": result.error,
        "errors_by_domain": " ".join(f"{domain}={error!r}" for domain, error in result.domain_errors.items()),
        "stream_hash": result.stream_hash,
        "data_fingerprint": result.data_fingerprint,
        "model": result.model,
        "model_fingerprint": result.model_fingerprint,
        "provenance": result.provenance,
        "versions": " ".join(f"{name}={version}" for name, version in result.versions.items()),
        "images_per_second": result.images_per_second if math.isfinite(result.seconds) else None,
        "peak_memory_mb": result.peak_memory_mb if math.isfinite(result.seconds) else None,
        "command": command(spec),
    }
