"""Figure 4a: four kinds of normalisation statistics."""

from functools import partial

from grotta.paper.one_domain import FIXED, SINGLE, accuracies, named_results, toy_cells
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import STATISTICS_ONLY, Variants, methods_of
from grotta.report.document import Block
from grotta.report.printed import Printed

STATISTICS: Variants = {
    "source": ("source", {}),
    "batch": ("bn", {}),
    "EMA on batches": ("grotta", {"balanced": False, **STATISTICS_ONLY}),
    "EMA on the bank": ("grotta", STATISTICS_ONLY),
}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    caption = "Figure 4a: four kinds of normalisation statistics, nothing trained."
    return accuracies(scope, named_results(scope, found, STATISTICS), "Normalisation statistics", caption)


RECIPE = Recipe(
    name="fig-statistics",
    title="Normalisation statistics",
    about="In the paper, whose mean and variance the norm layers use decides most of the accuracy.",
    cells=partial(toy_cells, variants=STATISTICS),
    blocks=_blocks,
    methods=methods_of(STATISTICS),
    single=SINGLE,
    fixed=FIXED,
)
