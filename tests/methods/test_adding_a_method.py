"""The recipe of CONTRIBUTING for a method, followed: its smallest method is all of one, and passes the contract."""

import re
from pathlib import Path

import pytest

import grotta
from grotta.bench.store.method_code import code_of
from grotta.methods import bn, registry

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE.split("## Add a method in ten minutes")[1].split("\n## ")[0]
[CODE] = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
FILE = Path(bn.__file__).read_text(encoding="utf-8")


def test_the_method_of_the_guide_is_all_of_its_file():
    imports, shown, rest = code_of(FILE).partition(code_of(CODE))
    assert shown
    assert not rest
    assert all(line.startswith(("from ", "import ")) for line in imports.split("\n") if line)


def test_under_a_name_of_its_own_it_passes_the_contract(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    exec(FILE.partition("@register")[0] + CODE.replace('register("bn")', 'register("mine")'), {})
    assert "mine" in grotta.list_methods()
    grotta.checks.check_method("mine")
