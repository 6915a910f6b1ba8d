"""From finished cells to a report on disk."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from grotta.bench.events import Failure
from grotta.bench.store.results import CellResult, load_results, write_file
from grotta.paper.recipes import directory_sections
from grotta.report.render.html import report_html
from grotta.report.render.markdown import to_csv
from grotta.report.render.svg import figure_svg
from grotta.report.render.text import cells_csv, listings_csv, report_markdown
from grotta.report.sections.content import Report, Section, benchmark_sections, distinct, reader_warnings, speed_listing
from grotta.report.sections.tables import row_key, row_keys, setup_of

Format = Literal["html", "md", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
TITLE = "Test-time adaptation under PTTA"


def make_report(
    results: Sequence[CellResult],
    *,
    title: str = TITLE,
    sections: Sequence[Section] | None = None,
    failures: Sequence[Failure] = (),
) -> Report:
    """The report on some results: ``sections``, or a section a setup, then time and memory."""
    rows = {key: place for place, key in enumerate(row_keys(results))}
    ordered = sorted(
        results,
        key=lambda r: (setup_of(r), -r.spec.gamma, rows[row_key(r.spec)], r.spec.stream_seed, r.spec.seed),
    )
    shown = distinct(benchmark_sections(ordered) if sections is None else sections)
    speed = speed_listing(ordered)
    if speed is not None:
        shown.append(Section("cost", "Time and memory", "", (speed,)))
    return Report(title, tuple(shown), tuple(ordered), tuple(reader_warnings(ordered, failures)))


def write_report(
    source: str | Path | Sequence[CellResult],
    out: str | Path,
    *,
    formats: Sequence[Format] = FORMATS,
    title: str = TITLE,
    sections: Sequence[Section] | None = None,
    failures: Sequence[Failure] = (),
) -> list[Path]:
    """Write a report on ``source``, results or a run's directory, to ``out`` and beside it; gives the files.

    ``html`` is one self-contained page, ``out`` itself. ``md`` comes with its figures in ``<name>-figures/``, ``csv``
    is a line a number of the tables and, in ``<name>-cells.csv``, a line a cell; ``<name>-listings.csv`` has what else
    is listed. The same results and times give the same bytes; times differ from run to run, so a run that was stopped
    and started again gives the same errors in every file, but not the same bytes where seconds and memory are shown.
    """
    unfinished = 0
    if isinstance(source, str | Path):
        results = load_results(source)
        unfinished = len(list((Path(source) / "cells").glob("*/"))) - len(results) - len(failures)
        sections = directory_sections(Path(source), results) if sections is None else sections
    else:
        results = list(source)
    report = make_report(results, title=title, sections=sections, failures=failures)
    if unfinished > 0:
        note = f"Cells without a result, because they are running, were stopped, failed or are damaged: {unfinished}."
        report = replace(report, warnings=(*report.warnings, note))
    page = Path(out)
    files: dict[Path, str] = {}
    if "html" in formats:
        files[page] = report_html(report)
    if "md" in formats:
        figures = page.with_name(f"{page.stem}-figures")
        files |= {figures / f"{figure.name}.svg": figure_svg(figure) for figure in report.figures}
        files[page.with_suffix(".md")] = report_markdown(report, figures.name)
    if "csv" in formats:
        files[page.with_suffix(".csv")] = to_csv(report.tables)
        files[page.with_name(f"{page.stem}-cells.csv")] = cells_csv(report.results)
        if report.listings:
            files[page.with_name(f"{page.stem}-listings.csv")] = listings_csv(report.listings)
    for path, text in files.items():
        try:
            write_file(path, text.encode())
        except OSError as error:
            reason = error.strerror or error
            message = f"cannot write {path}: {reason}; the results of the cells are kept, see grotta report"
            raise OSError(message) from error
    return list(files)
