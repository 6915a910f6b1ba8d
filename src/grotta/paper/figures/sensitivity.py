"""Figure 7b: the two weights of GRoTTA's loss."""

from collections.abc import Mapping
from itertools import product

from grotta.bench.spec import CellSpec
from grotta.methods import method_class
from grotta.paper.recipe import Found, Recipe, pick
from grotta.paper.scope import Scope
from grotta.paper.variants import behind, known_lines
from grotta.report.document import Block
from grotta.report.figure import Figure
from grotta.report.labels import data_name, mean_error
from grotta.report.printed import Printed
from grotta.report.sections.notes import provenance_notes
from grotta.report.table import Entry, pivot

LAMBDAS = (0.001, 0.01, 0.1, 1.0)
PLAIN_LAMBDAS = (0.01, 0.1)  # λ_batch and λ_re of GRoTTA as it is


def _options(scope: Scope) -> dict[tuple[float, float], Mapping[str, float]]:
    """The options of GRoTTA by λ_batch and λ_re; none for its own pair: the same cell as in the main table."""
    own = not method_class("grotta").presets[scope.bases[0].preset]
    return {
        (batch, re): {} if own and (batch, re) == PLAIN_LAMBDAS else {"lambda_batch": batch, "lambda_re": re}
        for batch, re in product(LAMBDAS, LAMBDAS)
    }


def _cells(scope: Scope) -> list[CellSpec]:
    return [spec for options in _options(scope).values() for spec in scope.cells("grotta", scope.hardest, options)]


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    entries = [
        Entry(f"{re:g}", f"{batch:g}", mean_error(result), result)
        for (batch, re), options in _options(scope).items()
        for result in pick(scope.cells("grotta", scope.hardest, options), found)
    ]
    where = f"by λ_re (row) and λ_batch {scope.at_hardest}"
    table = pivot(
        entries,
        name="t",
        title=f"{data_name(scope.dataset)}: error (%), mean over domains, {where}",
        header="λ_re",
        columns=[f"{value:g}" for value in LAMBDAS],
        rows=[f"{value:g}" for value in LAMBDAS],
        average=False,
        rivals=False,
        head=lambda column: f"λ_batch {column}",
        notes=provenance_notes([entry.result for entry in entries], printed, "") if entries else (),
    )
    points = {
        head.replace(" ", " = "): [(float(row.label), row.cells[j].mean) for row in table.rows]
        for j, head in enumerate(table.heads)
    }
    caption = "Figure 7b: orders of magnitude in the two weights of the loss; GRoTTA takes λ_batch 0.01 and λ_re 0.1."
    panel = known_lines(points, "Error by λ_re and λ_batch", "λ_re", x_scale="log")
    return [Figure("f", "Sensitivity", caption, panel, behind(table)), table]


RECIPE = Recipe(
    name="fig-sensitivity",
    title="Sensitivity to the loss weights",
    about="How much the two weights of the loss matter.",
    cells=_cells,
    blocks=_blocks,
    methods=("grotta",),
    single=("gammas",),
)
