"""Figure 6b: the error against gamma."""

from grotta.bench.spec import CellSpec
from grotta.paper.recipe import Found, Recipe, compared
from grotta.paper.scope import Scope
from grotta.paper.variants import lines_figure, variant_table
from grotta.report.document import Block
from grotta.report.printed import Printed

GAMMA_RANGE = (1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4)


def _cells(scope: Scope) -> list[CellSpec]:
    return compared(scope, scope.gammas_or(GAMMA_RANGE))


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    table = variant_table(
        scope,
        found,
        {method: (method, {}) for method in scope.methods},
        title="error (%), mean over domains, against γ",
        header="Method",
        beside=f"main/{scope.dataset}",
        printed=printed,
        gammas=scope.gammas_or(GAMMA_RANGE),
    )
    caption = (
        "Figure 6b: the smaller γ, the more imbalanced and changing the labels; on the right, nearly uniform ones."
    )
    return [lines_figure(table, "Error against γ", caption), table]


RECIPE = Recipe(
    name="fig-gamma",
    title="Error against γ",
    about="From nearly uniform labels to one class at a time.",
    cells=_cells,
    blocks=_blocks,
    gammas=GAMMA_RANGE,
)
