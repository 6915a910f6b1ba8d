"""The paper's toy experiments: one domain, one thing at a time."""

from collections.abc import Mapping
from typing import Any

from grotta.bench.experiments import ENTROPY
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.recipe import Found, Recipe, Scope
from grotta.paper.tables import ABLATION, Variants, methods_of
from grotta.report.figure import Figure
from grotta.report.sections.content import Block
from grotta.report.sections.figures import accuracy_panel, class_panel

BANK: dict[str, Any] = {"learns_from": "bank", "statistics": "tracked", "capacity": 1024}
OVERFITTING: Variants = {
    "directly": (ENTROPY, {"learns_from": "batch"}),
    "bank": (ENTROPY, {"learns_from": "bank", "capacity": 1}),
}
STATISTICS: Variants = {
    "source": ("source", {}),
    "batch": ("bn", {}),
    "EMA on batches": ABLATION["(a)"],
    "EMA on the bank": ABLATION["(b)"],
}
GRADIENT: Variants = {
    "without gradient preserving": (ENTROPY, {**BANK, "gradient": "none"}),
    "with gradient preserving": (ENTROPY, {**BANK, "gradient": "exact"}),
}
# One run on one domain at one gamma: what is more of them in a full run is not looked at.
SINGLE, FIXED = ("gammas", "domains", "seeds"), ("full",)


def toy_cells(scope: Scope, variants: Variants) -> list[CellSpec]:
    """Each variant on one domain at the smallest gamma."""
    one = scope.one_domain()
    return [spec for method, options in variants.values() for spec in one.cells(method, scope.hardest, options)]


def named_results(scope: Scope, found: Found, variants: Variants) -> dict[str, CellResult]:
    """The results of the variants that have one, by name."""
    cells = zip(variants, toy_cells(scope, variants))
    return {name: found[spec.id] for name, spec in cells if spec.id in found}


def _overfitting(scope: Scope, found: Found) -> list[Block]:
    named = named_results(scope, found, OVERFITTING)
    if not named:
        return []
    panels = [class_panel(next(iter(named.values())), "labels", "(a) true labels", 0)]
    last = accuracy_panel(_titled(named), "(d) accumulated accuracy")
    for letter, (name, result), line in zip("bc", named.items(), last.series):
        panels.append(class_panel(result, "predictions", f"({letter}) predicted, {name}", line.color))
    panels.append(last)
    caption = (
        "Figure 3: entropy minimisation on the norm layers' affine parameters with the source's statistics, directly "
        "on each batch, or on random batches of a bank with one image a class."
    )
    where = _where(scope, "CIFAR-100-C")
    return [Figure("f", "Local overfitting", f"{caption} {where}", tuple(panels), tuple(named.values()))]


def _statistics(scope: Scope, found: Found) -> list[Block]:
    caption = "Figure 4a: four kinds of normalisation statistics, nothing trained."
    return _accuracies(scope, named_results(scope, found, STATISTICS), "Normalisation statistics", caption)


def _gradient(scope: Scope, found: Found) -> list[Block]:
    caption = (
        "Figure 4b: entropy minimisation on random batches of the category-balanced bank, statistics tracked on the "
        "same batches."
    )
    return _accuracies(scope, named_results(scope, found, GRADIENT), "Gradient preserving", caption)


def _accuracies(scope: Scope, named: Mapping[str, CellResult], title: str, caption: str) -> list[Block]:
    if not named:
        return []
    panel = accuracy_panel(_titled(named), title)
    return [Figure("f", title, f"{caption} {_where(scope, 'CIFAR-10-C')}", (panel,), tuple(named.values()))]


def _titled(named: Mapping[str, CellResult]) -> dict[str, CellResult]:
    """The results by name and error, since the figure prints no numbers otherwise."""
    return {f"{name} ({100 - result.error:.1f} %)": result for name, result in named.items()}


def _where(scope: Scope, theirs: str) -> str:
    base = scope.one_domain().bases[0]
    return (
        f"Ours: {base.domains[0].replace('_', ' ')} of {base.dataset}, {base.model}, "
        f"{scope.at_hardest}. The paper: motion blur of {theirs}, γ not said."
    )


TOYS = (
    Recipe(
        "fig-overfitting",
        "Local overfitting",
        "In the paper, learning from batches with few classes makes a model forget the others, until it knows one.",
        lambda scope: toy_cells(scope, OVERFITTING),
        _overfitting,
        methods=methods_of(OVERFITTING),
        single=SINGLE,
        fixed=FIXED,
    ),
    Recipe(
        "fig-statistics",
        "Normalisation statistics",
        "In the paper, whose mean and variance the norm layers use decides most of the accuracy.",
        lambda scope: toy_cells(scope, STATISTICS),
        _statistics,
        methods=methods_of(STATISTICS),
        single=SINGLE,
        fixed=FIXED,
    ),
    Recipe(
        "fig-gradient",
        "Gradient preserving",
        "Global statistics are constants to the gradient; in the paper, preserving its form of training makes learning "
        "stable.",
        lambda scope: toy_cells(scope, GRADIENT),
        _gradient,
        methods=methods_of(GRADIENT),
        single=SINGLE,
        fixed=FIXED,
    ),
)
