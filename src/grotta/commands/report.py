"""``grotta report``: finished cells to one page, and to Markdown and CSV."""

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer

from grotta.commands.options import Json, comma_separated
from grotta.paper.directory import directory_report
from grotta.report.write import FORMATS, Format, write_report


def report(
    runs: Annotated[Path, typer.Argument(help="Where grotta bench, run or reproduce wrote to.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="The page; RUNS/report.html by default.")] = None,
    formats: Annotated[
        str, typer.Option("--format", help="html, md or csv, comma-separated; all three, side by side, by default.")
    ] = ",".join(FORMATS),
    json_output: Json = False,
) -> None:
    """Make a report of finished cells: one self-contained HTML page, Markdown and CSV.

    Example: `grotta report runs --out report.html --format html`
    """
    wanted = comma_separated(formats) or []
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown or not wanted:
        raise ValueError(f"format: expected some of {', '.join(FORMATS)}; got {formats!r}")
    if not (runs / "cells").is_dir() and not (runs / "recipes").is_dir():
        raise ValueError(f"runs: {runs} has no cells; grotta bench, run and reproduce write there with --out {runs}")
    if out is not None and out.suffix not in (".html", ".htm"):
        raise ValueError(f"out: the page's name ends in .html, the others are named after it; got {str(out)!r}")
    chosen: list[Format] = [name for name in FORMATS if name in wanted]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        files = write_report(directory_report(runs), out or runs / "report.html", formats=chosen)
    for warning in caught:
        typer.echo(f"grotta: {warning.message}", err=True)
    if json_output:
        typer.echo(json.dumps({"files": [str(path) for path in files]}))
    else:
        for path in files:
            typer.echo(path)
