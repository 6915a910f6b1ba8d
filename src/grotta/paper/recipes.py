"""All recipes by name: the paper's, in the order of reports, then those of installed packages (``grotta.recipes``)."""

from collections.abc import Mapping

from grotta._check import check_one_of
from grotta._plugins import load_plugins
from grotta.paper import matrix
from grotta.paper.figures import (
    bank,
    curves,
    gamma,
    gradient,
    output,
    overfitting,
    sensitivity,
    shift,
    statistics,
    zeta,
)
from grotta.paper.parking import ALL_WEATHER, PARKING
from grotta.paper.recipe import Recipe, register, registered
from grotta.paper.tables import ablation, affinity, domains, main, orders
from grotta.report.printed import Printed

for _module in (
    *(main, domains, ablation, affinity, orders),
    *(overfitting, statistics, gradient, curves, shift, gamma, zeta, output, bank, sensitivity),
):
    register(_module.RECIPE)
for _recipe in (PARKING, ALL_WEATHER, matrix.RECIPE):
    register(_recipe)


def all_recipes() -> Mapping[str, Recipe]:
    """Every recipe by name."""
    load_plugins("grotta.recipes")
    return registered()


def find_recipes(name: str) -> list[Recipe]:
    """The recipe of that name, or for ``all`` every one that is part of it.

    >>> [recipe.name for recipe in find_recipes("table-main")], len(find_recipes("all")) >= 15
    (['table-main'], True)
    """
    recipes = all_recipes()
    if name == "all":
        return [recipe for recipe in recipes.values() if recipe.in_all]
    return [recipes[check_one_of("name", name, ("all", *recipes))]]


def all_printed() -> Printed:
    """The printed numbers of all recipes."""
    return Printed.union(recipe.printed for recipe in all_recipes().values())
