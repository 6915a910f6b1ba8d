"""Figure 7a: the error against the size of the bank."""

from functools import partial

from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import Variants, behind, known_lines, methods_of, variant_cells, variant_table
from grotta.report.document import Block
from grotta.report.figure import Figure
from grotta.report.printed import AVERAGE, Printed

CAPACITIES = (100, 200, 500, 1000, 1500, 2000)
BANKS: Variants = {f"{capacity}": ("grotta", {"capacity": capacity}) for capacity in CAPACITIES}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    title = "error (%), mean over domains, by the capacity of the bank"
    table = variant_table(scope, found, BANKS, title=title, header="Capacity", printed=printed)
    points = {
        f"γ = {head}": [(float(row.label), row.cells[j].mean) for row in table.rows]
        for j, (column, head) in enumerate(zip(table.columns, table.heads))
        if column != AVERAGE
    }
    panel = known_lines(points, "Error by capacity", "images in the bank", x_scale="linear")
    caption = "Figure 7a: the error against the size of the bank; a larger bank holds older images."
    return [Figure("f", "Size of the bank", caption, panel, behind(table)), table]


RECIPE = Recipe(
    name="fig-bank",
    title="Size of the bank",
    about="How many images to keep.",
    cells=partial(variant_cells, variants=BANKS),
    blocks=_blocks,
    methods=methods_of(BANKS),
)
