"""A table or figure as a recipe: the cells it needs, and what is made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grotta.bench.inputs.opened import WITHOUT_GAMMA
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.network import SourceNetwork
from grotta.paper.scope import Scope
from grotta.report.document import Block, Section
from grotta.report.figure import Figure
from grotta.report.labels import data_name, plural
from grotta.report.printed import NOTHING_PRINTED, Printed

Found = Mapping[str, CellResult]  # finished cells by the id of their spec


@dataclass(frozen=True)
class Recipe:
    """A table or a figure, by default one of the paper."""

    name: str  # for ``grotta reproduce``
    title: str  # of its section in the report
    about: str  # where it is in the paper and what it shows
    cells: Callable[[Scope], list[CellSpec]]  # the cells it needs
    # what is made of those that were found, with all printed numbers to put beside them
    blocks: Callable[[Scope, Found, Printed], list[Block]]
    methods: tuple[str, ...] = ()  # of its cells, if it fixes them
    gammas: tuple[float, ...] = ()  # its own range, used when none is given
    single: tuple[str, ...] = ()  # options of which it takes a single value
    fixed: tuple[str, ...] = ()  # options that do not apply to it, besides ``methods``
    printed: Printed = NOTHING_PRINTED  # the published numbers that it brings
    choices: Callable[[], Mapping[str, Any]] = dict  # its defaults: arguments of :func:`grotta.paper.scope.make_scope`
    # makes its scope from methods, seeds, quick, full and a data root, if it covers several data sets
    own_scope: Callable[..., Scope] | None = None
    # the source network, if it does not come with grotta; it is trained when first needed
    network: SourceNetwork | None = None
    in_all: bool = True  # whether ``all`` includes it; recipes beyond the paper are only run by name

    @property
    def all_fixed(self) -> tuple[str, ...]:
        """The options that do not apply to it."""
        return tuple(dict.fromkeys((*(("methods",) if self.methods else ()), *self.fixed)))

    @property
    def choices_note(self) -> str:
        """What cannot be chosen, in a few words; ``""`` if everything can.

        >>> nothing = {"cells": lambda scope: [], "blocks": lambda scope, found, printed: []}
        >>> Recipe("t", "", "", **nothing, methods=("bn",), single=("seeds",)).choices_note
        'Fixes methods; takes one value of seeds.'
        """
        fixed = f"fixes {', '.join(self.all_fixed)}" if self.all_fixed else ""
        single = [option for option in self.single if option not in self.all_fixed]
        one = f"takes one value of {', '.join(single)}" if single else ""
        note = "; ".join(filter(None, (fixed, one)))
        return f"{note[0].upper()}{note[1:]}." if note else ""


_RECIPES: dict[str, Recipe] = {}


def register(recipe: Recipe) -> Recipe:
    """Make a recipe known to ``grotta reproduce`` and to reports under its name.

    Raises:
        ValueError: another recipe has the name.
    """
    if _RECIPES.setdefault(recipe.name, recipe) is not recipe:
        raise ValueError(f"name must be new, got {recipe.name!r}, which is registered already")
    return recipe


def registered() -> Mapping[str, Recipe]:
    """The recipes registered so far, by name; :func:`grotta.paper.recipes.all_recipes` also loads the others."""
    return _RECIPES


def check_choices(recipe: Recipe, given: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` if an option was ``given`` that does not apply to the recipe.

    >>> recipe = Recipe("fig-one", "", "", lambda scope: [], lambda scope, found, printed: [], single=("gammas",))
    >>> check_choices(recipe, {"gammas": [0.1, 0.01]})
    Traceback (most recent call last):
    ValueError: gammas must be a single value for fig-one, got 0.1, 0.01
    """
    for option, value in given.items():
        told = ", ".join(map(str, value)) if isinstance(value, list) else value
        if option in recipe.all_fixed:
            raise ValueError(f"{option} must be left out: {recipe.name} fixes it, got {told}")
        if option in recipe.single and (len(value) if isinstance(value, list) else value) > 1:
            raise ValueError(f"{option} must be a single value for {recipe.name}, got {told}")
    if recipe.gammas and given.get("stream") in WITHOUT_GAMMA:
        raise ValueError(f"stream must have label shifts for {recipe.name}, got {given['stream']}")


def section_name(recipe: Recipe, scope: Scope) -> str:
    """The name of the recipe's section for a scope, unique within a report."""
    return f"{recipe.name}-{scope.digest}"


def recipe_section(recipe: Recipe, scope: Scope, found: Found, printed: Printed = NOTHING_PRINTED) -> Section:
    """The section of a recipe, from what was found of its cells."""
    name = section_name(recipe, scope)
    blocks = [replace(block, name=f"{name}-{block.name}") for block in recipe.blocks(scope, found, printed)]
    shown = tuple(block for block in blocks if not isinstance(block, Figure) or block.panels)
    needed = set(recipe.cells(scope))
    missing = sum(spec.id not in found for spec in needed)
    verb = "has" if missing == 1 else "have"
    lack = f" {missing} of its {plural(len(needed), 'cell')} {verb} no result yet." if missing else ""
    domains = max((len(spec.domains) for spec in needed), default=0)
    several = len({base.dataset for base in scope.bases}) > 1 or recipe.own_scope is not None
    where = f"{data_name(scope.dataset)}, {plural(domains, 'domain')}" if needed and not several else ""
    return Section(name, recipe.title, recipe.about + lack, shown, where)


def by_id(results: Iterable[CellResult]) -> dict[str, CellResult]:
    """Finished cells by the id of their spec."""
    return {result.spec.id: result for result in results}


def pick(specs: Iterable[CellSpec], found: Found) -> list[CellResult]:
    """The results of those specs that have one, in order, each once."""
    return [found[key] for key in dict.fromkeys(spec.id for spec in specs) if key in found]


def compared(scope: Scope, gammas: Sequence[float] | None = None) -> list[CellSpec]:
    """Every method at every gamma."""
    return [spec for gamma in gammas or scope.gammas for method in scope.methods for spec in scope.cells(method, gamma)]
