"""``grotta report``: finished cells to one page, and to Markdown and CSV."""

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer

from grotta.commands.options import Json, comma_separated

FORMATS = ("html", "md", "csv")


def report(
    runs: Annotated[Path, typer.Argument(help="The --out folder of grotta bench, run or reproduce.")] = Path("runs"),
    out: Annotated[Path | None, typer.Option(help="The page; by default RUNS/report.html.")] = None,
    formats: Annotated[
        str, typer.Option("--format", help="html, md or csv, comma-separated; by default all three, side by side.")
    ] = ",".join(FORMATS),
    json_output: Json = False,
) -> None:
    """Make a report of finished cells: one self-contained HTML page, Markdown and CSV.

    Example: `grotta report runs --out report.html --format html`
    """
    from grotta.paper.directory import directory_report
    from grotta.report.write import Format, write_report

    wanted = comma_separated(formats) or []
    if not wanted or not set(wanted) <= set(FORMATS):
        raise ValueError(f"format must be one or more of {', '.join(FORMATS)}, got {formats!r}")
    if not (runs / "cells").is_dir() and not (runs / "recipes").is_dir():
        raise ValueError(
            f"runs must be the --out folder of grotta bench, run or reproduce, got {str(runs)!r} (no cells)"
        )
    if out is not None and out.suffix not in (".html", ".htm"):
        raise ValueError(f"out must end in .html (the other files are named after it), got {str(out)!r}")
    chosen: list[Format] = [name for name in FORMATS if name in wanted]  # type: ignore[misc]  # checked above
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
