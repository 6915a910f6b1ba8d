"""``grotta bench``: every method on the same streams, the table and the report."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from grotta.bench import CellResult, Failure, run_grid
from grotta.bench.grid import make_grid
from grotta.bench.spec import CellSpec
from grotta.commands.options import (
    DataRoot,
    Device,
    Gammas,
    Json,
    Out,
    Preset,
    Stream,
    comma_separated,
    comma_separated_numbers,
)
from grotta.commands.run import to_json as cell_json
from grotta.paper.directory import directory_report
from grotta.paper.recipes import all_printed
from grotta.report.live.board import make_board
from grotta.report.render.terminal import TerminalTable, print_lines
from grotta.report.sections.setups import by_setup
from grotta.report.sections.tables import main_table
from grotta.report.sections.warnings import reader_warnings
from grotta.report.write import write_report


def bench(
    dataset: Annotated[str, typer.Option(help="A data set's name (grotta data list) or folder:PATH.")] = "fashion-c",
    methods: Annotated[str | None, typer.Option(help="Methods, comma-separated; the paper's ten by default.")] = None,
    gammas: Gammas = None,
    domains: Annotated[
        str | None,
        typer.Option("--domains", "--corruptions", help="Domains in stream order, comma-separated; a few by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each cell, with seeds 0, 1, ...")] = 1,
    full: Annotated[bool, typer.Option("--full", help="All domains, and gammas 1e-1 to 1e-4.")] = False,
    model: Annotated[str, typer.Option(help="Network NAME (bundled) or NAME@WEIGHTS; the data set's own.")] = "",
    preset: Preset = "paper",
    stream: Stream = "ptta",
    period: Annotated[int, typer.Option(help="Images that share a label distribution.")] = 100,
    batch_size: Annotated[int, typer.Option(help="Images in a step.")] = 64,
    image_size: Annotated[int, typer.Option(help="Side of pictures read from files.")] = 224,
    out: Out = Path("runs"),
    executor: Annotated[str, typer.Option(help="local (processes of this machine) or ray (a cluster).")] = "local",
    address: Annotated[str | None, typer.Option(help="Of an existing Ray cluster; without, Ray starts here.")] = None,
    workers: Annotated[int | None, typer.Option(help="Cells at once; one a core by default.")] = None,
    device: Device = "cpu",
    data_root: DataRoot = None,
    json_output: Json = False,
) -> None:
    """Compare methods on the same streams: a live board, then the table and an HTML report.

    Stop it with Ctrl-C and start it again: finished cells are kept, the others go on from their last checkpoint.

    Example: `grotta bench --dataset cifar10-c --methods source,rotta,grotta --gammas 1e-1,1e-4`
    """
    specs = make_grid(
        dataset,
        methods=comma_separated(methods),
        gammas=comma_separated_numbers("gammas", gammas),
        seeds=seeds,
        domains=comma_separated(domains),
        model=model,
        preset=preset,
        stream=stream,
        period=period,
        batch_size=batch_size,
        image_size=image_size,
        full=full,
        data_root=data_root,
    )
    how = {"executor": executor, "address": address, "workers": workers, "device": device, "data_root": data_root}
    outcomes = run_with_board(specs, out, **how)
    results = [outcome for outcome in outcomes if isinstance(outcome, CellResult)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]

    def tell(page: Path | None) -> None:
        if json_output:
            typer.echo(json.dumps(to_json(results, failures, page), allow_nan=False))
        else:
            show(results, failures, page)

    report_and_tell(out, failures, tell)


def run_with_board(specs: Sequence[CellSpec], out: Path, **how: Any) -> list[CellResult | Failure]:
    """Run the cells behind a live board; Ctrl-C says how to go on."""
    check_address(how["executor"], how["address"])
    try:
        with make_board(specs) as board:
            return run_grid(specs, out, on_event=board, **how)
    except KeyboardInterrupt:
        typer.echo(f"grotta: stopped; the same command goes on from here (results so far are in {out})", err=True)
        raise typer.Exit(130) from None


def check_address(executor: str, address: str | None) -> None:
    """Refuse the address of a cluster that would not be used."""
    if address is not None and executor != "ray":
        raise ValueError(f"address: only with --executor ray; got {address!r} with --executor {executor}")


def report_and_tell(out: Path, failures: Sequence[Failure], tell: Callable[[Path | None], None]) -> None:
    """Write the report, then ``tell`` its page, or None if it could not be written; then fail if anything did.

    Neither keeps the other from its work: a disk that is full, or a terminal that cannot show a table.
    """
    page, problem = out / "report.html", None
    try:
        write_report(directory_report(out, failures=failures), page)
    except OSError as error:
        problem = error
    try:
        tell(page if problem is None else None)
    except UnicodeError as error:
        where = f"the report is {page}" if problem is None else problem
        raise OSError(f"the outcome cannot be printed here: {error}; {where}") from error
    if problem is not None:
        raise problem
    if failures:
        raise typer.Exit(1)


def show(results: Sequence[CellResult], failures: Sequence[Failure], page: Path | None) -> None:
    """Print the table, what a reader must know, and where the report is, if there is one."""
    console = Console()
    for group in by_setup(results).values():
        console.print(TerminalTable(main_table(group, all_printed())))
    print_lines(console, [f"Note: {warning}" for warning in reader_warnings(results, failures)], "yellow")
    if page is not None:
        typer.echo(f"Report: {page}")


def page_and_failures(page: Path | None, failures: Sequence[Failure]) -> dict[str, Any]:
    """What failed and where the report is, for programs."""
    failed = [{"spec": failure.spec.to_dict(), "message": failure.message} for failure in failures]
    return {"failed": failed, "report": None if page is None else str(page)}


def to_json(results: Sequence[CellResult], failures: Sequence[Failure], page: Path | None) -> dict[str, Any]:
    """The outcome for programs."""
    return {"cells": [cell_json(result) for result in results], **page_and_failures(page, failures)}
