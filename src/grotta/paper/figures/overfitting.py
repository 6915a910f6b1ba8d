"""Figure 3: entropy minimisation forgets the classes that a stream does not show."""

from grotta.bench.experiments import ENTROPY
from grotta.paper.one_domain import named_accuracies, named_results, toy_recipe, where
from grotta.paper.recipe import Found
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants
from grotta.report.document import Block
from grotta.report.figure import Figure
from grotta.report.printed import Printed
from grotta.report.sections.figures import class_panel

OVERFITTING: Variants = {
    "directly": (ENTROPY, {"learns_from": "batch"}),
    "bank": (ENTROPY, {"learns_from": "bank", "capacity": 1}),
}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    named = named_results(scope, found, OVERFITTING)
    if not named:
        return []
    panels = [class_panel(next(iter(named.values())), "labels", "(a) true labels", 0)]
    last = named_accuracies(named, "(d) accumulated accuracy")
    for letter, (name, result), line in zip("bc", named.items(), last.series):
        panels.append(class_panel(result, "predictions", f"({letter}) predicted, {name}", line.color))
    panels.append(last)
    caption = (
        "Figure 3: entropy minimisation on the norm layers' affine parameters with the source's statistics, directly "
        "on each batch, or on random batches of a bank with one image per class."
    )
    words = f"{caption} {where(scope, 'CIFAR-100-C')}"
    return [Figure("f", "Local overfitting", words, tuple(panels), tuple(named.values()))]


RECIPE = toy_recipe(
    name="fig-overfitting",
    title="Local overfitting",
    about="In the paper, learning from batches with few classes makes a model forget the others, until it knows one.",
    variants=OVERFITTING,
    blocks=_blocks,
)
