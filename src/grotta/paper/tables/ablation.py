"""Table 5: GRoTTA's parts, one after the other."""

from functools import partial

from grotta.paper.printed import read_printed
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.variants import STATISTICS_ONLY, Variants, methods_of, variant_cells, variant_table
from grotta.report.document import Block
from grotta.report.printed import Printed

ABLATION: Variants = {
    "bn": ("bn", {}),
    "(a)": ("grotta", {"balanced": False, **STATISTICS_ONLY}),
    "(b)": ("grotta", STATISTICS_ONLY),
    "(c)": ("grotta", {"lambda_re": 0.0, "output": None}),
    "(d)": ("grotta", {"output": None}),
    "(e)": ("grotta", {"lam": 0.6}),
    "grotta": ("grotta", {}),
}
_LABELS = {
    "(a)": "(a) statistics by EMA on the batch",
    "(b)": "(b) statistics by EMA on the bank",
    "(c)": "(c) + self-distillation",
    "(d)": "(d) + source regularisation",
    "(e)": "(e) + structure, fixed λ = 0.6",
}


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    title = "error (%), mean over domains, of variants of GRoTTA by γ"
    return [variant_table(scope, found, ABLATION, title=title, labels=_LABELS, beside="ablation", printed=printed)]


RECIPE = Recipe(
    name="table-ablation",
    title="Ablation",
    about="Table 5: what each part of GRoTTA brings.",
    cells=partial(variant_cells, variants=ABLATION),
    blocks=_blocks,
    methods=methods_of(ABLATION),
    printed=read_printed(__file__),
)
