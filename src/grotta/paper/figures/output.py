"""Figure 6d: bias-guided output adaptation against LAME's."""

from functools import partial

from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import STATISTICS_ONLY, Variants, lines_figure, methods_of, variant_cells, variant_table
from grotta.report.document import Block
from grotta.report.printed import Printed

OUTPUTS: Variants = {
    "(b)": ("grotta", STATISTICS_ONLY),
    "(b) + laplacian": ("grotta", {**STATISTICS_ONLY, "output": "laplacian"}),
    "(b) + bias-guided": ("grotta", {**STATISTICS_ONLY, "output": "bias_guided"}),
}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    title = "output adaptations on variant (b), error (%), mean over domains"
    table = variant_table(scope, found, OUTPUTS, title=title, printed=printed)
    caption = "Figure 6d: the two output adaptations on the same balanced predictions, those of variant (b)."
    return [lines_figure(table, "Output adaptations", caption), table]


RECIPE = Recipe(
    name="fig-output",
    title="Output adaptations",
    about="Bias-guided output adaptation against LAME's.",
    cells=partial(variant_cells, variants=OUTPUTS),
    blocks=_blocks,
    methods=methods_of(OUTPUTS),
)
