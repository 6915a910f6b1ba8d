"""The paper's tables and figures by name: which cells each needs, and what is made of them."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from grotta.bench.grid import make_grid
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult, write_file
from grotta.paper.printed import gamma_name
from grotta.report.figure import Figure
from grotta.report.sections.content import Block, Section
from grotta.report.sections.tables import TRANSFER_DOMAINS, gamma_head, plural

Found = Mapping[str, CellResult]  # finished cells by the id of their spec
SOURCE = "{source}"


@dataclass(frozen=True)
class Scope:
    """On what the paper's experiments are repeated.

    Attributes:
        bases: a spec for each source model, with its data set, domains and network; its method and gamma do not count.
        methods: the methods compared.
        gammas: the label shifts, the largest first.
        seeds: how many runs of each cell.
        only_gammas: no recipe may take a range of its own: these were asked for, or the stream knows none.
    """

    bases: tuple[CellSpec, ...]
    methods: tuple[str, ...]
    gammas: tuple[float, ...]
    seeds: int = 1
    only_gammas: bool = False

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return self.bases[0].dataset

    @property
    def hardest(self) -> float:
        """The smallest gamma."""
        return min(self.gammas)

    @property
    def at_hardest(self) -> str:
        """Where the label shift is hardest, in words."""
        iid = self.bases[0].stream == "iid"
        return "on an iid stream" if iid else f"at γ = {gamma_head(gamma_name(self.hardest))}"

    def gammas_or(self, usual: Sequence[float]) -> tuple[float, ...]:
        """The gammas of a recipe that has a range of its own, the ``usual`` one."""
        return self.gammas if self.only_gammas else tuple(usual)

    def cells(self, method: str, gamma: float, options: Mapping[str, Any] | None = None) -> list[CellSpec]:
        """The cells of a method at a gamma: one for each source model and seed."""
        given: Any = options or {}
        return [
            replace(base, method=method, gamma=gamma, options=given, stream_seed=seed, seed=seed, label="")
            for base in self.bases
            for seed in range(self.seeds)
        ]

    def one_domain(self) -> Self:
        """One run on the first domain alone, as for the paper's toy experiments."""
        base = self.bases[0]
        return replace(self, bases=(replace(base, domains=base.domains[:1]),), seeds=1)

    def to_dict(self) -> dict[str, Any]:
        """The scope as plain JSON values."""
        bases = [{k: v for k, v in base.to_dict().items() if k != "label"} for base in self.bases]
        values = {"bases": bases, "methods": list(self.methods), "gammas": list(self.gammas), "seeds": self.seeds}
        return {**values, "only_gammas": True} if self.only_gammas else values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The scope that :meth:`to_dict` gave."""
        bases = tuple(CellSpec.from_dict(base) for base in values["bases"])
        if not (bases and values["methods"] and values["gammas"]):
            raise ValueError("a scope has at least one base, one method and one gamma")
        only = bool(values.get("only_gammas", False))
        return cls(bases, tuple(values["methods"]), tuple(values["gammas"]), int(values["seeds"]), only)


@dataclass(frozen=True)
class Recipe:
    """A table or a figure of the paper.

    Attributes:
        name: what it is asked for by.
        title: of its section in the report.
        about: where it is in the paper and what it shows.
        cells: the cells it needs.
        blocks: what is made of those that were found.
        methods: of its cells, if it fixes them.
        gammas: a range of its own, which it takes when none is asked for.
        single: options of which it takes one value.
        fixed: options that it does not heed, besides ``methods``.
    """

    name: str
    title: str
    about: str
    cells: Callable[[Scope], list[CellSpec]]
    blocks: Callable[[Scope, Found], list[Block]]
    methods: tuple[str, ...] = ()
    gammas: tuple[float, ...] = ()
    single: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


def check_choices(recipe: Recipe, given: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` if the recipe would not heed an option that was ``given`` for it alone.

    >>> recipe = Recipe("fig-one", "", "", lambda scope: [], lambda scope, found: [], single=("gammas",))
    >>> check_choices(recipe, {"gammas": [0.1, 0.01]})
    Traceback (most recent call last):
    ValueError: gammas: fig-one takes one; got 0.1, 0.01
    """
    fixed = {*recipe.fixed, *(("methods",) if recipe.methods else ())}
    for option, value in given.items():
        told = ", ".join(map(str, value)) if isinstance(value, list) else value
        if option in fixed:
            raise ValueError(f"{option}: fixed by {recipe.name}, which would not heed it; got {told}")
        if option in recipe.single and (len(value) if isinstance(value, list) else value) > 1:
            raise ValueError(f"{option}: {recipe.name} takes one; got {told}")
    if recipe.gammas and given.get("stream") == "iid":
        raise ValueError(f"stream: {recipe.name} goes over label shifts, which an iid stream does not have; got iid")


def make_scope(
    dataset: str,
    *,
    methods: Sequence[str] | None = None,
    gammas: Sequence[float] | None = None,
    domains: Sequence[str] | None = None,
    model: str = "",
    seeds: int = 1,
    full: bool = False,
    data_root: Path | None = None,
    **setting: Any,
) -> Scope:
    """The scope for a data set; in short, a few domains and two gammas, unless ``full``.

    On PACS, OfficeHome and DomainNet, ``model`` has ``{source}`` in the place of the source domain's name, and each
    domain's model meets all others; with ``domains``, one model meets those. ``setting`` is what else a grid takes:
    preset, stream, period, batch_size, image_size. An iid stream has one gamma, which means nothing there.
    """
    every: dict[str, Any] = {"methods": methods, "gammas": gammas, "seeds": seeds, "full": full, "data_root": data_root}
    every |= setting
    names = TRANSFER_DOMAINS.get(dataset, ())
    if names and domains is None:
        if SOURCE not in model:
            raise ValueError(
                f"model: {dataset} has a model for each of its domains; give them as NAME@WEIGHTS with {SOURCE} in the "
                f"place of the domain's name, or one model and its domains; got {model!r}"
            )
        grids = [
            make_grid(dataset, domains=[d for d in names if d != source], model=model.replace(SOURCE, source), **every)
            for source in names
        ]
    else:
        grids = [make_grid(dataset, domains=domains, model=model, **every)]
    found = grids[0]
    return Scope(
        bases=tuple(replace(grid[0], method="source", gamma=1.0, label="") for grid in grids),
        methods=tuple(dict.fromkeys(spec.method for spec in found)),
        gammas=tuple(sorted({spec.gamma for spec in found}, reverse=True)),
        seeds=seeds,
        only_gammas=gammas is not None or setting.get("stream") == "iid",
    )


def recipe_section(recipe: Recipe, scope: Scope, found: Found) -> Section:
    """The section of a recipe, from what was found of its cells."""
    name = f"{recipe.name}-{_digest(scope)}"
    blocks = [replace(block, name=f"{name}-{block.name}") for block in recipe.blocks(scope, found)]
    shown = tuple(block for block in blocks if not isinstance(block, Figure) or block.panels)
    needed = set(recipe.cells(scope))
    missing = sum(spec.id not in found for spec in needed)
    lack = f" {missing} of its {plural(len(needed), 'cell')} have no result yet." if missing else ""
    domains = max((len(spec.domains) for spec in needed), default=0)
    where = f"{scope.dataset}, {plural(domains, 'domain')}" if needed else ""
    return Section(name, recipe.title, recipe.about + lack, shown, where)


def save_recipe(out: Path, recipe: Recipe, scope: Scope) -> None:
    """Write down in a run's directory that the recipe was asked for, so that its reports show it."""
    content = json.dumps({"recipe": recipe.name, "scope": scope.to_dict()}, indent=1)
    write_file(out / "recipes" / f"{recipe.name}-{_digest(scope)}.json", f"{content}\n".encode())


def saved_recipes(out: Path, recipes: Mapping[str, Recipe]) -> list[tuple[Recipe, Scope]]:
    """The recipes that were asked for in a run's directory, in the order of ``recipes``; a damaged one is warned of."""
    found: dict[object, tuple[Recipe, Scope]] = {}
    for path in sorted((out / "recipes").glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            recipe, scope = recipes[content["recipe"]], Scope.from_dict(content["scope"])
            # scopes that differ in what the recipe does not look at come to the same
            key = recipe.name, frozenset(recipe.cells(scope))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"the recipe in {path} is damaged ({reason}); the report goes without it", stacklevel=2)
        else:
            found.setdefault(key, (recipe, scope))
    order = list(recipes)
    return sorted(found.values(), key=lambda pair: order.index(pair[0].name))


def by_id(results: Iterable[CellResult]) -> dict[str, CellResult]:
    """Finished cells by the id of their spec."""
    return {result.spec.id: result for result in results}


def pick(specs: Iterable[CellSpec], found: Found) -> list[CellResult]:
    """The results of those specs that have one, in order, each once."""
    return [found[key] for key in dict.fromkeys(spec.id for spec in specs) if key in found]


def compared(scope: Scope, gammas: Sequence[float] | None = None) -> list[CellSpec]:
    """Every method at every gamma."""
    return [spec for gamma in gammas or scope.gammas for method in scope.methods for spec in scope.cells(method, gamma)]


def _digest(scope: Scope) -> str:
    content = json.dumps(scope.to_dict(), sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=4).hexdigest()
