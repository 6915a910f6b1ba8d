"""Table 6: the feature graph of the output adaptation."""

from functools import partial

from grotta.paper.printed import read_printed
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants, methods_of, variant_cells, variant_table
from grotta.report.document import Block
from grotta.report.printed import Printed

AFFINITY: Variants = {
    **{f"sigma={sigma}": ("grotta", {"affinity": "rbf", "sigma": sigma}) for sigma in (0.1, 1.0, 2.5, 5.0)},
    # k = 5 is GRoTTA as it is: the same cell as in the main table
    **{f"k={k}": ("grotta", {} if k == 5 else {"k": k}) for k in (1, 5, 10, 15)},
}
_LABELS = {row: f"RBF {row}" if row.startswith("sigma") else f"kNN {row}" for row in AFFINITY}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    title = "error (%), mean over domains, with different affinity matrices by γ"
    shown = partial(variant_table, title=title, header="Affinity", labels=_LABELS, beside="affinity")
    return [shown(scope, found, AFFINITY, printed=printed)]


RECIPE = Recipe(
    name="table-affinity",
    title="Affinity matrices",
    about="Table 6: the feature graph of the output adaptation, kNN with k neighbours or RBF of width sigma.",
    cells=partial(variant_cells, variants=AFFINITY),
    blocks=_blocks,
    methods=methods_of(AFFINITY),
    printed=read_printed(__file__),
)
