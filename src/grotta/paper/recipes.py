"""All recipes by name, and the sections that a run's directory asks for."""

from collections.abc import Sequence
from pathlib import Path

from grotta.bench.store.results import CellResult
from grotta.paper.figures import FIGURES
from grotta.paper.recipe import Recipe, by_id, recipe_section, saved_recipes
from grotta.paper.tables import TABLES
from grotta.paper.toys import TOYS
from grotta.report.sections.content import Section, benchmark_sections
from grotta.report.sections.tables import by_setup, row_key

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*TABLES, *TOYS, *FIGURES)}


def find_recipes(name: str) -> list[Recipe]:
    """The recipe of that name, or all of them for ``all``.

    >>> [recipe.name for recipe in find_recipes("table-main")], len(find_recipes("all"))
    (['table-main'], 15)
    """
    if name == "all":
        return list(RECIPES.values())
    if name not in RECIPES:
        raise ValueError(f"name: expected all or one of {', '.join(RECIPES)}; got {name!r}")
    return [RECIPES[name]]


def directory_sections(out: Path, results: Sequence[CellResult]) -> list[Section]:
    """The sections of a report on a run's directory: what was asked for by recipe, then all other cells."""
    found = by_id(results)
    asked = saved_recipes(out, RECIPES)
    shown = {spec.id for recipe, scope in asked for spec in recipe.cells(scope)}
    others: list[CellResult] = []
    for group in by_setup(results).values():
        if any(result.spec.id not in shown for result in group):
            # a comparison is shown whole, also where a recipe needed some of its cells
            others += [r for r in group if r.spec.id not in shown or row_key(r.spec) == r.spec.method]
    return [*(recipe_section(recipe, scope, found) for recipe, scope in asked), *benchmark_sections(others)]
