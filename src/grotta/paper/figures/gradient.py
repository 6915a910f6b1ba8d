"""Figure 4b: global statistics with and without the gradient of training."""

from functools import partial
from typing import Any

from grotta.bench.experiments import ENTROPY
from grotta.paper.one_domain import FIXED, SINGLE, accuracies, named_results, toy_cells
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants, methods_of
from grotta.report.document import Block
from grotta.report.printed import Printed

_BANK: dict[str, Any] = {"learns_from": "bank", "statistics": "tracked", "capacity": 1024}
GRADIENT: Variants = {
    "without gradient preserving": (ENTROPY, {**_BANK, "gradient": "none"}),
    "with gradient preserving": (ENTROPY, {**_BANK, "gradient": "exact"}),
}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    caption = (
        "Figure 4b: entropy minimisation on random batches of the category-balanced bank, statistics tracked on the "
        "same batches."
    )
    return accuracies(scope, named_results(scope, found, GRADIENT), "Gradient preserving", caption)


RECIPE = Recipe(
    name="fig-gradient",
    title="Gradient preserving",
    about="Global statistics are constants to the gradient; in the paper, preserving its form of training makes "
    "learning stable.",
    cells=partial(toy_cells, variants=GRADIENT),
    blocks=_blocks,
    methods=methods_of(GRADIENT),
    single=SINGLE,
    fixed=FIXED,
)
