"""Figure 7a: the error against the size of the bank."""

from grotta.paper.variants import Variants, behind, known_lines, variant_recipe
from grotta.report.figure import Figure
from grotta.report.printed import AVERAGE
from grotta.report.table import Table

CAPACITIES = (100, 200, 500, 1000, 1500, 2000)
BANKS: Variants = {f"{capacity}": ("grotta", {"capacity": capacity}) for capacity in CAPACITIES}


def _figure(table: Table) -> Figure:
    points = {
        f"γ = {head}": [(float(row.label), row.cells[j].mean) for row in table.rows]
        for j, (column, head) in enumerate(zip(table.columns, table.heads))
        if column != AVERAGE
    }
    panel = known_lines(points, "Error by capacity", "images in the bank", x_scale="linear")
    caption = "Figure 7a: the error against the size of the bank; a larger bank holds older images."
    return Figure("f", "Size of the bank", caption, panel, behind(table))


RECIPE = variant_recipe(
    BANKS,
    name="fig-bank",
    title="Size of the bank",
    about="How many images to keep.",
    table="error (%), mean over domains, by the capacity of the bank",
    header="Capacity",
    figure=_figure,
)
