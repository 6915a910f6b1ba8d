"""Table 5: GRoTTA's parts, one after the other."""

from grotta.paper.printed import read_printed
from grotta.paper.variants import STATISTICS_ONLY, Variants, variant_recipe

ABLATION: Variants = {
    "bn": ("bn", {}),
    "(a)": ("grotta", {"balanced": False, **STATISTICS_ONLY}),
    "(b)": ("grotta", STATISTICS_ONLY),
    "(c)": ("grotta", {"lambda_re": 0.0, "output": None}),
    "(d)": ("grotta", {"output": None}),
    "(e)": ("grotta", {"lam": 0.6}),
    "grotta": ("grotta", {}),
}
RECIPE = variant_recipe(
    ABLATION,
    name="table-ablation",
    title="Ablation",
    about="Table 5: what each part of GRoTTA brings.",
    table="error (%), mean over domains, of variants of GRoTTA by γ",
    labels={
        "(a)": "(a) statistics by EMA on the batch",
        "(b)": "(b) statistics by EMA on the bank",
        "(c)": "(c) + self-distillation",
        "(d)": "(d) + source regularisation",
        "(e)": "(e) + structure, fixed λ = 0.6",
    },
    beside="ablation",
    printed=read_printed(__file__),
)
