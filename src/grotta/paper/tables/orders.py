"""Table 7: the main table, averaged over ten orders of the domains."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, permutations
from math import factorial

import numpy as np

from grotta.bench.spec import CellSpec
from grotta.paper.printed import read_printed
from grotta.paper.recipe import Found, Recipe, compared, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.labels import data_name, gamma_head, gamma_name, mean_error, plural, row_key, row_keys, row_label
from grotta.report.printed import Printed
from grotta.report.sections.notes import provenance_notes
from grotta.report.table import Entry, pivot

ORDERS = 10


def orders(domains: Sequence[str], count: int = ORDERS) -> list[tuple[str, ...]]:
    """``count`` different orders of some domains, always the same ones; all orders if there are fewer.

    >>> orders(["a", "b"]), len(orders("abcde"))
    ([('a', 'b'), ('b', 'a')], 10)
    """
    if factorial(len(domains)) <= count:
        return list(permutations(domains))
    generator = np.random.default_rng(0)
    found: dict[tuple[str, ...], None] = {}
    while len(found) < count:
        found[tuple(domains[i] for i in generator.permutation(len(domains)))] = None
    return list(islice(found, count))


def _ordered(scope: Scope) -> list[Scope]:
    """The scope once for each order of its domains."""
    ways = [[replace(base, domains=order) for order in orders(base.domains)] for base in scope.bases]
    return [replace(scope, bases=bases) for bases in zip(*ways)]


def _cells(scope: Scope) -> list[CellSpec]:
    return [spec for way in _ordered(scope) for spec in compared(way)]


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    ways = _ordered(scope)
    results = pick(_cells(scope), found)
    if not results:
        return []
    theirs = printed.tables.get("orders")
    table = pivot(
        [Entry(row_key(r.spec), gamma_name(r.spec.gamma), mean_error(r), r) for r in results],
        name="t",
        title=f"{data_name(scope.dataset)}: error (%) averaged over {plural(len(ways), 'order')} of the domains",
        columns=[gamma_name(gamma) for gamma in scope.gammas],
        rows=row_keys(results),
        paper=theirs,
        label=row_label,
        head=gamma_head,
        notes=(
            *provenance_notes(results, printed, theirs.dataset if theirs else "", ordered=False),
            *(f"Order {number}: {' → '.join(way.bases[0].domains)}" for number, way in enumerate(ways, start=1)),
        ),
    )
    return [table]


RECIPE = Recipe(
    name="table-orders",
    title="Ten orders of the domains",
    about="Table 7: whether the order of the domains matters.",
    cells=_cells,
    blocks=_blocks,
    printed=read_printed(__file__),
)
