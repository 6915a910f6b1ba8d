"""CONTRIBUTING's "Add a table or a figure" is followed word by word, and gives a table."""

import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from grotta.bench.spec import CellSpec
from grotta.cli import main
from grotta.paper import recipe as recipe_module
from grotta.paper.recipe import by_id, recipe_section, register
from grotta.paper.recipes import all_printed, find_recipes
from grotta.paper.scope import Scope
from grotta.report.table import Table

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE.split("## Add a table or a figure")[1].split("\n## ")[0]
[CODE] = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
[NUMBERS] = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture
def rates(tmp_path, monkeypatch):
    """The module of the guide, with its recipe registered for one test."""
    (tmp_path / "rates.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "rates.json").write_text(NUMBERS, encoding="utf-8")
    spec = spec_from_file_location("rates", tmp_path / "rates.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(recipe_module, "_RECIPES", dict(recipe_module._RECIPES))
    register(module.RECIPE)
    return module


def test_the_recipe_is_found_by_name_and_is_not_part_of_all(rates):
    assert find_recipes("table-rates") == [rates.RECIPE]
    assert rates.RECIPE not in find_recipes("all")


def test_its_table_shows_our_errors_beside_the_printed_ones(rates, make_result):
    base = CellSpec(method="source", dataset="fashion-c", domains=("fog",), gamma=1.0)
    scope = Scope((base,), methods=("tent",), gammas=(0.1, 0.0001))
    cells = rates.RECIPE.cells(scope)
    assert [(spec.method, dict(spec.options)["lr"], spec.gamma) for spec in cells] == [
        *(("tent", rate, 0.1) for rate in (1e-4, 1e-3)),
        *(("tent", rate, 0.0001) for rate in (1e-4, 1e-3)),
    ]
    same = {"method": "tent", "errors": {"fog": 32.5}, "dataset": "fashion-c"}
    made = [make_result(gamma=spec.gamma, options=dict(spec.options), **same) for spec in cells]
    section = recipe_section(rates.RECIPE, scope, by_id(made), all_printed())
    [table] = section.blocks
    assert isinstance(table, Table)
    cell = table.cell("lr 0.0001", "0.1")
    assert (cell.mean, cell.paper, cell.difference) == (32.5, 30.0, 2.5)
    assert table.cell("lr 0.001", "0.0001").paper is None
    assert section.intro == "How fast TENT should learn."


def test_a_name_that_is_taken_is_refused(rates):
    with pytest.raises(ValueError, match="name must be new, got 'table-rates'"):
        register(recipe_module.Recipe("table-rates", "", "", lambda scope: [], lambda scope, found, printed: []))


def installed_rates(folder, install):
    code = f"{CODE}\nfrom grotta.paper.recipe import register\n\nregister(RECIPE)\n"
    install(folder, "more-tables", "[grotta.recipes]\nrates = rates\n", {"rates": code})
    (folder / "rates.json").write_text(NUMBERS, encoding="utf-8")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def grotta(*words, environment):
    command = [sys.executable, "-m", "grotta", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_an_installed_package_brings_its_table(site, install, monkeypatch, capsys):
    monkeypatch.setattr(recipe_module, "_RECIPES", dict(recipe_module._RECIPES))
    installed_rates(site, install)
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "--list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert listed["table-rates"] == "Learning rates. How fast TENT should learn."
    assert next(iter(listed)) == "table-main"


@pytest.mark.slow
def test_grotta_reproduce_runs_the_table_of_an_installed_package(tmp_path, install):
    environment = installed_rates(tmp_path / "package", install)
    words = ("table-rates", "--domains", "fog", "--gammas", "1e-1", "--workers", 1, "--out", tmp_path / "runs")
    shown = grotta("reproduce", *words, environment=environment)
    assert "lr 0.0001" in shown
    assert "(30.0, " in shown
    assert "Learning rates: fashion-c, 1 domain" in (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
