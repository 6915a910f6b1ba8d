"""Methods by name: what describes them is on the class, and installed packages may bring their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import grotta
from grotta.methods import PAPER_METHODS, list_methods, method_class, registry
from grotta.methods.tent import Tent

PLUGIN = """
from grotta.methods.tent import Tent
from grotta.methods.registry import register
from grotta.outputs import Laplacian
from grotta.outputs import register as register_output

@register("plugged")
class Plugged(Tent):
    title, place, cost = "Plugged In", 35, 2.5

register_output("plugged_output")(type("PluggedOutput", (Laplacian,), {}))
"""
SCRIPT = """
import grotta
from grotta.checks import batches, small_model
assert "plugged" in grotta.list_methods(), grotta.list_methods()
assert grotta.methods.method_class("plugged").title == "Plugged In"
assert "plugged_output" in grotta.outputs.list_outputs()
print(grotta.create("plugged", small_model(), output="plugged_output")(next(batches((4,)))).shape)
"""


def test_the_methods_of_the_paper_are_a_fixed_tuple_in_the_order_of_its_tables():
    assert set(PAPER_METHODS) <= set(list_methods())
    places = [method_class(name).place for name in PAPER_METHODS]
    assert places == sorted(set(places))


def test_every_method_describes_itself():
    titles = [method_class(name).title for name in list_methods()]
    assert all(titles)
    assert len(set(titles)) == len(titles)
    assert method_class("grotta").title == "GRoTTA"
    assert method_class("source").cost == 1
    assert all(1 <= method_class(name).cost < 100 for name in list_methods())


def test_a_subclass_has_a_title_and_a_place_of_its_own(monkeypatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    mine = grotta.register("mine")(type("Mine", (Tent,), {}))
    assert (mine.title, mine.place, mine.cost) == ("mine", grotta.Adapter.place, Tent.cost)
    assert list_methods()[-1] == "mine"
    with pytest.raises(ValueError, match="'tent' is registered already: Tent"):
        grotta.register("tent")(type("Other", (Tent,), {}))


def test_installed_packages_bring_methods_and_output_adaptations(install, tmp_path):
    entries = "[grotta.methods]\nplugged = plugged_methods\n[grotta.outputs]\nplugged = plugged_methods\n"
    install(tmp_path, "plugged-in", entries, {"plugged_methods": PLUGIN})
    path = os.pathsep.join([str(tmp_path), str(Path(grotta.__file__).parents[1])])
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert run.stdout == "torch.Size([4, 5])\n", run.stderr
