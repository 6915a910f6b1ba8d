"""Figure 6c: the imbalance score over time."""

from functools import partial

from grotta.paper.recipe import Found, Recipe, pick
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants, methods_of, variant_cells
from grotta.report.document import Block
from grotta.report.labels import row_key
from grotta.report.printed import Printed
from grotta.report.sections.figures import zeta_figure

GROTTA: Variants = {"grotta": ("grotta", {})}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    results = pick(variant_cells(scope, GROTTA), found)
    return [zeta_figure(results, method=row_key(results[0].spec))] if results else []


RECIPE = Recipe(
    name="fig-zeta",
    title="Imbalance score",
    about="Figure 6c: the score by which GRoTTA trusts the batch's structure; of several runs, the one with the "
    "smallest seeds.",
    cells=partial(variant_cells, variants=GROTTA),
    blocks=_blocks,
    methods=methods_of(GROTTA),
)
