"""Tables, listings and cells as CSV: numbers are not rounded, and the same report gives the same bytes."""

import csv
import io
import math
from collections.abc import Iterable, Sequence

from grotta.bench.store.results import CellResult
from grotta.report.command import command
from grotta.report.document import Listing
from grotta.report.labels import mean_error
from grotta.report.table import Cell, Row, Table

_SPEC_COLUMNS = ("dataset", "gamma", "preset", "stream", "period", "batch_size", "stream_seed", "seed")
_ERRORS = ("error_mean_over_domains", "error_of_all_images")
CELL_COLUMNS = (
    *("cell", "row", *_SPEC_COLUMNS, "domains", *_ERRORS, "errors_by_domain", "stream_hash", "data_fingerprint"),
    *("model", "model_fingerprint", "provenance", "versions", "images_per_second", "peak_memory_mb", "command"),
)
LISTING_COLUMNS = ("listing", "line", "row", "column", "value")


def tables_csv(tables: Iterable[Table]) -> str:
    """All tables in one CSV text, one line per number."""
    text = io.StringIO()
    writer = csv.DictWriter(text, TABLE_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            writer.writerows(_csv_line(table, row, column, cell) for column, cell in zip(table.columns, row.cells))
    return text.getvalue()


def cells_csv(results: Sequence[CellResult]) -> str:
    """All cells, one line each, with the command that runs it again."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CELL_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_cell_line, results))
    return text.getvalue()


def listings_csv(listings: Iterable[Listing]) -> str:
    """All listings in one CSV text, one line per value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(LISTING_COLUMNS)
    for listing in listings:
        for line, (first, *values) in enumerate(listing.rows, start=1):
            writer.writerows((listing.name, line, first, head, value) for head, value in zip(listing.heads[1:], values))
    return text.getvalue()


def _csv_line(table: Table, row: Row, column: str, cell: Cell) -> dict[str, object]:
    runs = {(result.spec.stream_seed, result.spec.seed) for result in cell.results}
    return {
        "table": table.name,
        "row": row.label,
        "column": column,
        "mean_over_domains": cell.mean,
        "std": cell.std,
        "runs": len(runs),
        "rank": cell.rank,
        "gain": cell.gain,
        "complete": cell.complete,
        "paper": cell.paper,
        "difference": cell.difference,
        "paper_note": cell.paper_note,
        "paper_gain": cell.paper_gain,
        "paper_gain_note": cell.paper_gain_note,
        "cells": " ".join(result.spec.id for result in cell.results),
        "streams": " ".join(dict.fromkeys(result.stream_hash for result in cell.results)),
    }


TABLE_COLUMNS = tuple(_csv_line(Table("", "", "", (), (), ()), Row("", ()), "", Cell()))


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
