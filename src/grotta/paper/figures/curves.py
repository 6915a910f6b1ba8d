"""Figure 5: accuracy over time."""

from grotta.paper.recipe import Found, Recipe, compared, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.printed import Printed
from grotta.report.sections.figures import curves


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    results = pick(compared(scope), found)
    return [curves(results)] if results else []


RECIPE = Recipe(
    name="fig-curves",
    title="Accumulated accuracy",
    about="Figure 5: the accuracy of each method over time.",
    cells=compared,
    blocks=_blocks,
)
