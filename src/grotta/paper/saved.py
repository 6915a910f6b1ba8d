"""Which recipes were asked for in a run's directory: written before the run, so that every later report shows them."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path

from grotta import _files
from grotta.paper.recipe import Recipe, section_name
from grotta.paper.scope import Scope

_DIRECTORY = "recipes"


def save_recipe(out: Path, recipe: Recipe, scope: Scope) -> None:
    """Record in a run's directory that the recipe was asked for."""
    content = json.dumps({"recipe": recipe.name, "scope": scope.to_dict()}, indent=1)
    _files.write(out / _DIRECTORY / f"{section_name(recipe, scope)}.json", f"{content}\n".encode())


def saved_recipes(out: Path, recipes: Mapping[str, Recipe]) -> list[tuple[Recipe, Scope]]:
    """The recipes that were asked for in a run, in the order of ``recipes``; a damaged one gives a warning."""
    found: dict[object, tuple[Recipe, Scope]] = {}
    for path in sorted((out / _DIRECTORY).glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            recipe, scope = recipes[content["recipe"]], Scope.from_dict(content["scope"])
            # scopes that differ only in what the recipe ignores are the same
            key = recipe.name, frozenset(recipe.cells(scope))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"the recipe in {path} is damaged ({reason}); the report leaves it out", stacklevel=2)
        else:
            found.setdefault(key, (recipe, scope))
    order = list(recipes)
    return sorted(found.values(), key=lambda pair: order.index(pair[0].name))
