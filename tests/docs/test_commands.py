"""Every command line that a page shows is one that grotta takes: commands, options, methods, presets and domains."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from grotta.bench.grid import GAMMAS
from grotta.bench.inputs.check import check_spec
from grotta.bench.spec import CellSpec
from grotta.cli import app
from grotta.commands.options import comma_separated, comma_separated_numbers
from grotta.data import list_corruptions
from grotta.data.registry import find_entry
from grotta.data.sets.pklot import CAMERAS, WEATHER
from grotta.paper.recipes import all_recipes

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(page: Path) -> Iterator[list[str]]:
    """The words after ``grotta`` of each command line in the page's shell blocks and sentences."""
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in [*lines, *re.findall(r"`(grotta [^`\n]+)`", prose)]:
        if line.startswith("grotta "):
            yield [word for word in shlex.split(line, comments=True)[1:] if word != "..."]


COMMANDS = [pytest.param(words, id=" ".join(words)[:100]) for page in PAGES for words in shown(page)]


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command and its options as typer reads them; nothing is run."""
    command, context = typer.main.get_command(app), None
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        context = command.make_context(words[0], [], parent=context, resilient_parsing=True)
        command, words = command.commands[words[0]], words[1:]
    if "--help" in words or hasattr(command, "commands"):
        return command.name, {}
    return command.name, command.make_context(command.name, words, parent=context).params


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_a_page_shows_is_accepted(words: list[str]) -> None:
    name, options = parsed(words)
    if name == "reproduce" and options["name"]:
        assert options["name"] == "all" or options["name"] in all_recipes()
    if name not in ("bench", "run", "reproduce"):
        return
    dataset, domains = options["dataset"], comma_separated(options["domains"])
    methods = comma_separated(options.get("methods")) or [options.get("method") or "source"]
    gammas = comma_separated_numbers("gammas", options.get("gammas")) or [*GAMMAS]
    for method in methods:
        name, _, preset = method.partition(" ")  # rows of the regret matrix may have a preset
        for gamma in gammas:
            spec = {"dataset": dataset, "domains": domains or ["all"], "gamma": gamma}
            check_spec(CellSpec(method=name, preset=preset or options["preset"], stream=options["stream"], **spec))
    known = {*list_corruptions(), *find_entry(dataset, "dataset").domains}
    if dataset == "pklot":  # drawn streams have a domain per camera and weather, recorded ones a domain per camera
        known |= {f"{camera}-{weather}" for camera in CAMERAS for weather in WEATHER}
    assert set(domains or ()) <= known


def test_the_pages_show_many_commands() -> None:
    assert len(COMMANDS) > 50
