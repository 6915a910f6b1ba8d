"""``grotta reproduce``: every table and figure of the paper, by name."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grotta.commands.options import GridOptions, RunOptions, WorkerOptions, with_options

if TYPE_CHECKING:
    from grotta.bench import Failure
    from grotta.paper.network import SourceNetwork
    from grotta.report.document import Report, Section

MOST_COLUMNS = 7  # that a terminal of the usual width can show


@with_options
def reproduce(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A table or figure (see --list), or all.", show_default=False)] = "",
    *,
    grid: GridOptions,
    workers: WorkerOptions,
    options: RunOptions,
    quick: Annotated[bool, typer.Option("--quick", help="For matrix: eight situations, for a short run.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show all names and exit.")] = False,
) -> None:
    """Reproduce a table or figure of the paper in the report, with the paper's numbers beside ours.

    By default a short run: a few domains, two gammas, on the embedded data. Tables and figures share cells, which are
    never run twice. On PACS and the like, {source} in --model stands for the source domain.

    What a table or figure fixes (`--list` says what) cannot be chosen when it is asked for by name, and does not apply
    to it under `all`. Those that take a single gamma or domain use the smallest gamma and the first domain.

    `parking` and `parking-all-weather` go beyond the paper: real cameras in recorded order, with a network that is
    trained when it is first needed. `matrix` compares methods in many situations: those that need no download, with
    `--quick` eight of them, with `--full` all whose data are here; its methods may have a preset (`grotta fast`).

    Example: `grotta reproduce table-ablation --dataset cifar100-c --model resnet56_proj@weights.pt --full`
    """
    from grotta.commands.running import echo_json, failures_json, make_plan, report_and_tell, run_with_board
    from grotta.paper.recipe import check_choices
    from grotta.paper.recipes import find_recipes
    from grotta.paper.saved import save_recipe
    from grotta.paper.scope import make_scope

    if listed:
        show_names(options.json_output)
        return
    if not name:
        raise ValueError("name must be a table or figure (`grotta reproduce --list` shows them), or all; got none")
    recipes, choices = find_recipes(name), grid.choices()
    own_scope = recipes[0].own_scope if name != "all" else None
    if quick and own_scope is None:
        raise ValueError(f"quick must be left out: {name} has no quick version")
    if name != "all":
        [recipe] = recipes
        given = {option: value for option, value in choices.items() if is_given(context, option)}
        check_choices(recipe, given)
        choices |= {**recipe.choices(), **given}
        if recipe.network is not None and "model" not in given:
            choices["model"] = trained(recipe.network, options)
        choices["methods"] = list(recipe.methods) or choices["methods"]  # only they need to have the preset
    if own_scope is None:
        scope = make_scope(**choices, data_root=options.data_root)
    else:
        own = {option: choices[option] for option in ("methods", "seeds", "full")}
        scope = own_scope(**own, quick=quick, data_root=options.data_root, tell=partial(typer.echo, err=True))
    specs = dict.fromkeys(spec for recipe in recipes for spec in recipe.cells(scope))
    plan = make_plan(list(specs), options, workers)
    for recipe in recipes:  # before the run, so that a report on an unfinished one shows them too
        save_recipe(options.out, recipe, scope)
    outcome = run_with_board(plan)
    names = tuple(f"{recipe.name}-" for recipe in recipes)

    def tell(report: "Report", page: Path | None) -> None:
        if options.json_output:
            echo_json({"recipes": [r.name for r in recipes], **failures_json(page, outcome.failures)})
        else:
            asked = [section for section in report.showing(outcome.results) if section.name.startswith(names)]
            show(asked, outcome.failures, page)

    report_and_tell(options.out, outcome, tell)


def trained(network: "SourceNetwork", options: RunOptions) -> str:
    """The name of a recipe's own network for cells; it is trained now if no data root has it."""
    from grotta.bench.inputs.network import find_weights
    from grotta.commands.train import Training, train_source
    from grotta.data.roots import download_dir
    from grotta.models.training import Recipe as TrainingRecipe

    if not Path(find_weights(network.spec, options.data_root)[1]).is_file():
        typer.echo(f"training the source network {network.name}, once", err=True)
        request = Training(
            dataset=network.dataset,
            domains=network.domains,
            model=network.model,
            image_size=network.image_size,
            recipe=TrainingRecipe(epochs=network.epochs),
        )
        folder = download_dir() / network.folder
        resume = any(folder.glob("*.checkpoint.pt"))
        train_source(request, folder, resume=resume, device=options.device, data_root=options.data_root)
    return network.spec


def is_given(context: typer.Context, option: str) -> bool:
    """Whether the option is on the command line, even with its default value."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def show_names(json_output: bool) -> None:
    """Print what can be reproduced."""
    from grotta.paper.recipes import all_recipes

    if json_output:
        typer.echo(json.dumps({recipe.name: f"{recipe.title}. {recipe.about}" for recipe in all_recipes().values()}))
        return
    width = max(map(len, all_recipes()))
    for recipe in all_recipes().values():
        typer.echo(f"{recipe.name:{width}}  {recipe.title}. {recipe.about} {recipe.choices_note}".rstrip())


def show(sections: "list[Section]", failures: "list[Failure]", page: Path | None) -> None:
    """Print the tables, what failed, and where the report is, if it was written."""
    from rich.console import Console

    from grotta.report.figure import Figure
    from grotta.report.render.terminal import print_block

    console = Console()
    tables = [block for section in sections for block in section.blocks if not isinstance(block, Figure)]
    narrow = [table for table in tables if len(table.heads) <= MOST_COLUMNS]
    for table in narrow:
        print_block(console, table)
    if len(narrow) < len(tables):
        typer.echo(f"Tables too wide for a terminal, see the report: {len(tables) - len(narrow)}.")
    for failure in failures:
        typer.echo(f"grotta: {failure.spec.label} failed: {failure.message}", err=True)
    if page is not None:
        typer.echo(f"Report: {page}")
