"""Methods by name: what describes them is on the class, and installed packages may bring their own."""

import pytest

import grotta
from grotta.checks import batches, small_model
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


def test_installed_packages_bring_methods_and_output_adaptations(site, install, monkeypatch):
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    monkeypatch.setattr(grotta.outputs.registry, "_OUTPUTS", dict(grotta.outputs.registry._OUTPUTS))
    entries = "[grotta.methods]\nplugged = plugged_methods\n[grotta.outputs]\nplugged = plugged_methods\n"
    install(site, "plugged-in", entries, {"plugged_methods": PLUGIN})
    assert "plugged" in list_methods()
    assert method_class("plugged").title == "Plugged In"
    assert "plugged_output" in grotta.outputs.list_outputs()
    adapter = grotta.create("plugged", small_model(), output="plugged_output")
    assert adapter(next(batches((4,)))).shape == (4, 5)
