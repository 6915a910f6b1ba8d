"""``grotta reproduce``: every table and figure of the paper, by name."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from grotta.bench import CellResult, CellSpec, Failure, run_grid
from grotta.bench.cell import inputs as setting
from grotta.commands.bench import check_address, page_and_failures, report_and_tell, run_with_board
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
from grotta.paper.recipe import by_id, check_choices, recipe_section
from grotta.paper.recipes import all_printed, all_recipes, find_recipes
from grotta.paper.saved import save_recipe
from grotta.paper.scope import make_scope
from grotta.report.document import Section
from grotta.report.render.terminal import TerminalTable
from grotta.report.table import Table

MOST_COLUMNS = 7  # that a terminal of usual width shows without breaking numbers


def reproduce(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A table or figure (see --list), or all.", show_default=False)] = "",
    dataset: Annotated[str, typer.Option(help="A data set's name (grotta data list) or folder:PATH.")] = "fashion-c",
    methods: Annotated[str | None, typer.Option(help="Methods, comma-separated; the paper's ten by default.")] = None,
    gammas: Gammas = None,
    domains: Annotated[
        str | None,
        typer.Option("--domains", "--corruptions", help="Domains in stream order, comma-separated; a few by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each cell, with seeds 0, 1, ...")] = 1,
    full: Annotated[bool, typer.Option("--full", help="All domains, and gammas 1e-1 to 1e-4.")] = False,
    model: Annotated[
        str,
        typer.Option(help="Network NAME (bundled) or NAME@WEIGHTS, with {source} for the source domain of PACS etc."),
    ] = "",
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
    listed: Annotated[bool, typer.Option("--list", help="Show all names and stop.")] = False,
    json_output: Json = False,
) -> None:
    """Repeat a table or figure of the paper and put it into the report, its own numbers beside ours.

    In short by default: a few domains, two gammas, on the embedded data. Cells are shared between tables and figures,
    and never run twice.

    What a table or figure fixes cannot be chosen when it is asked for by name, and does not apply to it under `all`:

    - methods: table-ablation, table-affinity, fig-zeta, fig-output, fig-bank, fig-sensitivity and the next three;

    - one run on one domain at one gamma (the smallest), so no --full: fig-overfitting, fig-statistics, fig-gradient;

    - one gamma (the smallest): fig-sensitivity;

    - gammas of its own, 1e-4 to 1e1, unless --gammas says otherwise, so not iid: fig-gamma;

    - everything: fig-shift, which needs no data and no network.

    Example: `grotta reproduce table-ablation --dataset cifar100-c --model resnet56_proj@weights.pt --full`
    """
    if listed:
        show_names(json_output)
        return
    if not name:
        raise ValueError("name: which table or figure? `grotta reproduce --list` shows them; `all` is all of them")
    recipes = find_recipes(name)
    choices: dict[str, Any] = {
        "dataset": dataset,
        "methods": comma_separated(methods),
        "gammas": comma_separated_numbers("gammas", gammas),
        "domains": comma_separated(domains),
        "model": model,
        "seeds": seeds,
        "full": full,
        "preset": preset,
        "stream": stream,
        "period": period,
        "batch_size": batch_size,
        "image_size": image_size,
    }
    if name != "all":
        [recipe] = recipes
        check_choices(recipe, {option: value for option, value in choices.items() if is_given(context, option)})
        choices["methods"] = list(recipe.methods) or choices["methods"]  # only they need to have the preset
    scope = make_scope(**choices, data_root=data_root)
    specs = list(dict.fromkeys(spec for recipe in recipes for spec in recipe.cells(scope)))
    how: dict[str, Any] = {
        "executor": executor,
        "address": address,
        "workers": workers,
        "device": device,
        "data_root": data_root,
    }
    check_how(specs, out, **how)
    for recipe in recipes:  # before the run, so that a report on an unfinished one knows of them too
        save_recipe(out, recipe, scope)
    outcomes = run_with_board(specs, out, **how)
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    found = by_id(outcome for outcome in outcomes if isinstance(outcome, CellResult))

    def tell(page: Path | None) -> None:
        if json_output:
            typer.echo(json.dumps({"recipes": [r.name for r in recipes], **page_and_failures(page, failures)}))
        else:
            show([recipe_section(recipe, scope, found, all_printed()) for recipe in recipes], failures, page)

    report_and_tell(out, failures, tell)


def is_given(context: typer.Context, option: str) -> bool:
    """Whether the user wrote the option, be it with the value that it has without."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def check_how(specs: list[CellSpec], out: Path, **how: Any) -> None:
    """Refuse what the cells cannot run with, before anything is written."""
    check_address(how["executor"], how["address"])
    for spec in specs:
        setting.check(spec)
    run_grid([], out, **how)  # without cells, it only checks how they would run


def show_names(json_output: bool) -> None:
    """Print what can be reproduced."""
    if json_output:
        typer.echo(json.dumps({recipe.name: f"{recipe.title}. {recipe.about}" for recipe in all_recipes().values()}))
        return
    width = max(map(len, all_recipes()))
    for recipe in all_recipes().values():
        typer.echo(f"{recipe.name:{width}}  {recipe.title}. {recipe.about}")


def show(sections: list[Section], failures: list[Failure], page: Path | None) -> None:
    """Print the tables, what failed, and where the report is, if there is one."""
    console = Console()
    tables = [block for section in sections for block in section.blocks if isinstance(block, Table)]
    narrow = [table for table in tables if len(table.heads) <= MOST_COLUMNS]
    for table in narrow:
        console.print(TerminalTable(table))
    if len(narrow) < len(tables):
        typer.echo(f"{len(tables) - len(narrow)} tables too wide for here are in the report.")
    for failure in failures:
        typer.echo(f"grotta: {failure.spec.label} failed: {failure.message}", err=True)
    if page is not None:
        typer.echo(f"Report: {page}")
