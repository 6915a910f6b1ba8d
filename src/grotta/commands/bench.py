"""``grotta bench``: every method on the same streams, the table and the report."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from grotta.commands.options import GridOptions, RunOptions, WorkerOptions, with_options

if TYPE_CHECKING:
    from grotta.commands.running import Outcome
    from grotta.report.document import Report


@with_options
def bench(grid: GridOptions, workers: WorkerOptions, options: RunOptions) -> None:
    """Compare methods on the same streams: a live board, then the table and an HTML report.

    By default a short run on the embedded data: the ten methods of the paper at two label shifts, on 3,200 images of
    each of three corruptions. `--full` is the whole benchmark.

    Stop it with Ctrl-C and start it again: finished cells are kept, the others are resumed from their last checkpoint.

    Example: `grotta bench --dataset cifar10-c --methods source,rotta,grotta --gammas 1e-1,1e-4`
    """
    from grotta.bench.grid import make_grid
    from grotta.commands.camera import filmed
    from grotta.commands.running import cell_json, echo_json, failures_json, make_plan, report_and_tell, run_with_board

    choices = {**grid.choices(), "images": grid.images}
    choices["dataset"] = filmed(grid.dataset, grid.stream, grid.images or 0, options.out)
    specs = make_grid(**choices, data_root=options.data_root)
    outcome = run_with_board(make_plan(specs, options, workers))

    def tell(report: "Report", page: Path | None) -> None:
        if options.json_output:
            cells = [cell_json(result) for result in outcome.results]
            echo_json({"cells": cells, **failures_json(page, outcome.failures)})
        else:
            show(report, outcome, page)

    report_and_tell(options.out, outcome, tell)


def show(report: "Report", outcome: "Outcome", page: Path | None) -> None:
    """Print the table, what a reader must know, where the time went, and where the report is, if it was written."""
    from rich.console import Console

    from grotta.commands.running import time_spent
    from grotta.report.render.terminal import print_block, print_lines
    from grotta.report.sections.listings import unlabelled_listing
    from grotta.report.sections.warnings import reader_warnings

    console = Console()
    for table in report.main_tables(outcome.results):
        print_block(console, table)
    if (listing := unlabelled_listing(outcome.results)) is not None:
        print_block(console, listing)
    notes = reader_warnings(outcome.results, outcome.failures)
    print_lines(console, [f"Note: {note}" for note in notes], "yellow")
    if spent := time_spent(outcome):
        typer.echo(spent, err=True)
    if page is not None:
        typer.echo(f"Report: {page}")
