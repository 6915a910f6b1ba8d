"""Tables 3 and 4 and those of the appendix: the main table's errors, domain by domain."""

from grotta.paper.printed import read_printed
from grotta.paper.recipe import Found, Recipe, compared, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.labels import row_keys
from grotta.report.printed import Printed
from grotta.report.sections.tables import domain_table, transfer_table


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    results = pick(compared(scope), found)
    present = [gamma for gamma in scope.gammas if any(result.spec.gamma == gamma for result in results)]
    if len(scope.bases) == 1:
        return [domain_table(results, gamma, printed) for gamma in present]
    return [
        transfer_table(results, key, gamma, printed)
        for gamma in present
        for key in row_keys(result for result in results if result.spec.gamma == gamma)
    ]


RECIPE = Recipe(
    name="table-domains",
    title="Tables by domain",
    about="Tables 3 and 4 and the appendix: the errors behind the main table, domain by domain. The appendix's numbers "
    "are not in the paper's source.",
    cells=compared,
    blocks=_blocks,
    printed=read_printed(__file__),
)
