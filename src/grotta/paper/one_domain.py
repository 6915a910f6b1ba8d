"""What the paper's toy experiments share: one run on one domain at the smallest gamma, as accuracies over time."""

from collections.abc import Callable, Mapping
from functools import partial

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants, methods_of
from grotta.report.document import Block
from grotta.report.figure import Figure, Panel, ends_alike
from grotta.report.labels import data_name
from grotta.report.printed import Printed
from grotta.report.sections.figures import accuracy_panel


def toy_recipe(
    name: str, title: str, about: str, variants: Variants, blocks: Callable[[Scope, Found, Printed], list[Block]]
) -> Recipe:
    """One run on one domain at one gamma: more domains, gammas or runs, as in a full run, do not apply."""
    cells, single = partial(toy_cells, variants=variants), ("gammas", "domains", "seeds")
    return Recipe(name, title, about, cells, blocks, methods_of(variants), single=single, fixed=("full",))


def accuracy_recipe(name: str, title: str, about: str, variants: Variants, caption: str) -> Recipe:
    """A figure of the variants' accuracies over time."""

    def blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
        named = named_results(scope, found, variants)
        if not named:
            return []
        panel = named_accuracies(named, title)
        words = " ".join(filter(None, (caption, where(scope, "CIFAR-10-C"), ends_alike([panel]))))
        return [Figure("f", title, words, (panel,), tuple(named.values()))]

    return toy_recipe(name, title, about, variants, blocks)


def toy_cells(scope: Scope, variants: Variants) -> list[CellSpec]:
    """Each variant on one domain at the smallest gamma."""
    one = scope.one_domain()
    return [spec for method, options in variants.values() for spec in one.cells(method, scope.hardest, options)]


def named_results(scope: Scope, found: Found, variants: Variants) -> dict[str, CellResult]:
    """The results of the variants that have one, by name."""
    cells = zip(variants, toy_cells(scope, variants))
    return {name: found[spec.id] for name, spec in cells if spec.id in found}


def named_accuracies(named: Mapping[str, CellResult], title: str) -> Panel:
    """The accuracies over time, with the final ones in the names, since the figure has no other numbers."""
    return accuracy_panel({f"{name} ({100 - r.error:.1f} %)": r for name, r in named.items()}, title)


def where(scope: Scope, theirs: str) -> str:
    """Which domain and network were used, and which in the paper."""
    base = scope.one_domain().bases[0]
    return (
        f"Ours: {base.domains[0].replace('_', ' ')} of {data_name(base.dataset)}, {base.model}, "
        f"{scope.at_hardest}. The paper: motion blur of {theirs}; it does not give γ."
    )
