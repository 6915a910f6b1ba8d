"""The recipe of CONTRIBUTING for a data set, followed: one file and one entry, and everything knows it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import grotta.data
from grotta.bench.inputs.check import check_spec
from grotta.bench.spec import CellSpec
from grotta.commands.data import app
from grotta.commands.source_data import open_source
from grotta.data import DataNotFoundError, registry

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILE = GUIDE.partition("## Add a data set")[2].partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def seasons(tmp_path, monkeypatch, make_picture):
    """The data set ``seasons`` with two pictures in each domain; gives its data root."""
    module = {}
    exec(compile(FILE, "seasons.py", "exec"), module)
    monkeypatch.setitem(registry.ENTRIES, "seasons", module["ENTRY"])
    for domain in ("autumn", "summer", "winter"):
        for label in ("leaf", "tree"):
            make_picture(tmp_path / "root" / "Seasons" / domain / label / "a.png")
    return tmp_path / "root"


def test_it_is_loaded_and_listed_by_name(seasons):
    assert grotta.data.list_datasets()[-1] == "seasons"
    data = grotta.data.load("seasons", root=seasons, image_size=16)
    assert (data.domains, data.class_names) == (("autumn", "summer", "winter"), ("leaf", "tree"))
    assert data.images("winter", [1, 0]).shape == (2, 3, 16, 16)


def test_the_commands_and_the_benchmark_know_it(seasons, tmp_path):
    listed = json.loads(CliRunner().invoke(app, ["list", "--data-root", str(seasons), "--json"]).output)
    assert list(listed["datasets"]["seasons"]["here"]) == ["autumn", "summer", "winter"]
    check_spec(CellSpec(method="source", dataset="seasons", domains=("summer",), gamma=0.1))
    assert open_source("seasons", ["summer"], 16, seasons).domains == ("summer",)
    with pytest.raises(DataNotFoundError, match="unpack it so that .*new/seasons/<season>"):
        CliRunner().invoke(app, ["get", "seasons", "--data-root", str(tmp_path / "new")], catch_exceptions=False)


def test_no_name_of_a_data_set_is_compared_outside_the_registry():
    """Only its own file and the registry may; examples and defaults of the command line aside."""
    source = Path(grotta.data.__file__).parents[1]
    names = {f'"{name}"' for name in registry.ENTRIES} | {'"folder:', 'endswith("-c")', 'removesuffix("-c")'}
    allowed = {'"imagenet"'}  # also the name of a scale of corruptions
    found = [
        f"{path.relative_to(source)}:{number}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        if path.parent.name != "sets" and path.name != "registry.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if any(name in line for name in names - allowed) and ">>>" not in line
        if any(word in line for word in ("==", "!=", " in {", " in (", "startswith", "endswith", "removesuffix"))
    ]
    assert found == []
