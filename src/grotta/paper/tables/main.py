"""Table 2: the errors of the methods by gamma."""

from grotta.paper.printed import read_printed
from grotta.paper.recipe import Found, Recipe, compared, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.printed import Printed
from grotta.report.sections.tables import main_table


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    results = pick(compared(scope), found)
    return [main_table(results, printed)] if results else []


RECIPE = Recipe(
    name="table-main",
    title="Main table",
    about="Table 2: errors of ten methods under PTTA.",
    cells=compared,
    blocks=_blocks,
    printed=read_printed(__file__),
)
