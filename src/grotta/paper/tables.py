"""The paper's tables: the main one, by domain, ablation, affinity and ten orders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations
from math import factorial
from typing import Any

import numpy as np

from grotta.bench.spec import CellSpec
from grotta.paper import printed as paper
from grotta.paper.printed import gamma_name
from grotta.paper.recipe import Found, Recipe, Scope, compared, pick
from grotta.report.sections.content import Block
from grotta.report.sections.tables import (
    domain_table,
    gamma_head,
    main_table,
    mean_error,
    plural,
    provenance_notes,
    row_key,
    row_keys,
    row_label,
    transfer_table,
)
from grotta.report.table import Entry, Table, pivot

Variants = Mapping[str, tuple[str, Mapping[str, Any]]]  # row -> method and options
ORDERS = 10

STATISTICS_ONLY = {"train": False, "output": None}
ABLATION: Variants = {
    "bn": ("bn", {}),
    "(a)": ("grotta", {"balanced": False, **STATISTICS_ONLY}),
    "(b)": ("grotta", STATISTICS_ONLY),
    "(c)": ("grotta", {"lambda_re": 0.0, "output": None}),
    "(d)": ("grotta", {"output": None}),
    "(e)": ("grotta", {"lam": 0.6}),
    "grotta": ("grotta", {}),
}
ABLATION_LABELS = {
    "(a)": "(a) statistics by EMA on the batch",
    "(b)": "(b) statistics by EMA on the bank",
    "(c)": "(c) + self-distillation",
    "(d)": "(d) + source regularisation",
    "(e)": "(e) + structure, fixed λ = 0.6",
}
AFFINITY: Variants = {
    **{f"sigma={sigma}": ("grotta", {"affinity": "rbf", "sigma": sigma}) for sigma in (0.1, 1.0, 2.5, 5.0)},
    # k = 5 is GRoTTA as it is: the same cell as in the main table
    **{f"k={k}": ("grotta", {} if k == 5 else {"k": k}) for k in (1, 5, 10, 15)},
}


def methods_of(variants: Variants) -> tuple[str, ...]:
    """The methods of variants, each once."""
    return tuple(dict.fromkeys(method for method, _ in variants.values()))


def variant_cells(scope: Scope, variants: Variants, gammas: Sequence[float] | None = None) -> list[CellSpec]:
    """Every variant at every gamma."""
    return [
        spec
        for gamma in gammas or scope.gammas
        for method, options in variants.values()
        for spec in scope.cells(method, gamma, options)
    ]


def variant_entries(scope: Scope, found: Found, variants: Variants, gammas: Sequence[float]) -> list[Entry]:
    """The errors of variants by gamma."""
    return [
        Entry(row, gamma_name(gamma), mean_error(result), result)
        for row, (method, options) in variants.items()
        for gamma in gammas
        for result in pick(scope.cells(method, gamma, options), found)
    ]


def variant_table(
    scope: Scope,
    found: Found,
    variants: Variants,
    *,
    name: str,
    title: str,
    header: str = "Variant",
    labels: Mapping[str, str] | None = None,
    printed: str = "",
    gammas: Sequence[float] | None = None,
) -> Table:
    """The errors of variants by gamma, beside the paper's table ``printed``."""
    gammas = gammas or scope.gammas
    entries = variant_entries(scope, found, variants, gammas)
    theirs = paper.find(printed)
    results = [entry.result for entry in entries]
    return pivot(
        entries,
        name=name,
        title=f"{scope.dataset}: {title}",
        header=header,
        columns=[gamma_name(gamma) for gamma in gammas],
        rows=list(variants),
        paper=theirs,
        label=lambda row: (labels[row], "") if labels and row in labels else row_label(row),
        head=gamma_head,
        notes=provenance_notes(results, theirs.dataset if theirs else "") if results else (),
    )


def orders(domains: Sequence[str], count: int = ORDERS) -> list[tuple[str, ...]]:
    """``count`` different orders of some domains, always the same ones; all orders if there are not so many.

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


def _main(scope: Scope, found: Found) -> list[Block]:
    results = pick(compared(scope), found)
    return [main_table(results)] if results else []


def _domains(scope: Scope, found: Found) -> list[Block]:
    results = pick(compared(scope), found)
    present = [gamma for gamma in scope.gammas if any(result.spec.gamma == gamma for result in results)]
    if len(scope.bases) == 1:
        return [domain_table(results, gamma) for gamma in present]
    return [
        transfer_table(results, key, gamma)
        for gamma in present
        for key in row_keys(result for result in results if result.spec.gamma == gamma)
    ]


def _ablation(scope: Scope, found: Found) -> list[Block]:
    title = "error (%), mean over domains, of variants of GRoTTA by γ"
    labels = ABLATION_LABELS
    return [variant_table(scope, found, ABLATION, name="t", title=title, labels=labels, printed="ablation")]


def _affinity(scope: Scope, found: Found) -> list[Block]:
    title = "error (%), mean over domains, with different affinity matrices by γ"
    labels = {row: f"RBF {row}" if row.startswith("sigma") else f"kNN {row}" for row in AFFINITY}
    table = variant_table(
        scope, found, AFFINITY, name="t", title=title, header="Affinity", labels=labels, printed="affinity"
    )
    return [table]


def _orders(scope: Scope, found: Found) -> list[Block]:
    ways = _ordered(scope)
    results = pick([spec for way in ways for spec in compared(way)], found)
    if not results:
        return []
    theirs = paper.table("orders")
    table = pivot(
        [Entry(row_key(r.spec), gamma_name(r.spec.gamma), mean_error(r), r) for r in results],
        name="t",
        title=f"{scope.dataset}: error (%) averaged over {plural(len(ways), 'order')} of the domains",
        columns=[gamma_name(gamma) for gamma in scope.gammas],
        rows=row_keys(results),
        paper=theirs,
        label=row_label,
        head=gamma_head,
        notes=(
            *provenance_notes(results, theirs.dataset, ordered=False),
            *(f"Order {number}: {' → '.join(way.bases[0].domains)}" for number, way in enumerate(ways, start=1)),
        ),
    )
    return [table]


TABLES = (
    Recipe("table-main", "Main table", "Table 2: errors of ten methods under PTTA.", compared, _main),
    Recipe(
        "table-domains",
        "Tables by domain",
        "Tables 3 and 4 and the appendix: the errors behind the main table, domain by domain. The appendix's numbers "
        "are not in the paper's source.",
        compared,
        _domains,
    ),
    Recipe(
        "table-ablation",
        "Ablation",
        "Table 5: what each part of GRoTTA brings.",
        lambda scope: variant_cells(scope, ABLATION),
        _ablation,
        methods=methods_of(ABLATION),
    ),
    Recipe(
        "table-affinity",
        "Affinity matrices",
        "Table 6: the feature graph of the output adaptation, kNN with k neighbours or RBF of width sigma.",
        lambda scope: variant_cells(scope, AFFINITY),
        _affinity,
        methods=methods_of(AFFINITY),
    ),
    Recipe(
        "table-orders",
        "Ten orders of the domains",
        "Table 7: whether the order in which the domains come decides the result.",
        lambda scope: [spec for way in _ordered(scope) for spec in compared(way)],
        _orders,
    ),
)
