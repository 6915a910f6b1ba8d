"""A report on disk: one HTML page, Markdown with its figures, CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from grotta import _files
from grotta.report.document import Report
from grotta.report.render.csv import cells_csv, listings_csv, tables_csv
from grotta.report.render.html import report_html
from grotta.report.render.markdown import report_markdown
from grotta.report.render.svg import figure_svg

Format = Literal["html", "md", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)


def write_report(report: Report, out: str | Path, *, formats: Sequence[Format] = FORMATS) -> list[Path]:
    """Write a report to ``out`` and beside it; returns the files.

    ``html`` is one self-contained page, ``out`` itself. ``md`` comes with its figures in ``<name>-figures/``. ``csv``
    is one line per number of the tables, in ``<name>-cells.csv`` one line per cell, and in ``<name>-listings.csv``
    whatever else is listed. The same results and times give the same bytes. Times differ from run to run, so a run
    that was stopped and resumed gives the same errors in every file, but not the same seconds and memory.
    """
    page = Path(out)
    files: dict[Path, str] = {}
    if "html" in formats:
        files[page] = report_html(report)
    if "md" in formats:
        figures = page.with_name(f"{page.stem}-figures")
        files |= {figures / f"{figure.name}.svg": figure_svg(figure) for figure in report.figures}
        files[page.with_suffix(".md")] = report_markdown(report, figures.name)
    if "csv" in formats:
        files[page.with_suffix(".csv")] = tables_csv(report.tables)
        files[page.with_name(f"{page.stem}-cells.csv")] = cells_csv(report.results)
        if report.listings:
            files[page.with_name(f"{page.stem}-listings.csv")] = listings_csv(report.listings)
    for path, text in files.items():
        try:
            _files.write(path, text.encode())
        except OSError as error:
            reason = error.strerror or error
            message = f"cannot write {path}: {reason}; the results of the cells are kept, see grotta report"
            raise OSError(message) from error
    return list(files)
