"""Figure 4a: four kinds of normalisation statistics."""

from grotta.paper.one_domain import accuracy_recipe
from grotta.paper.variants import STATISTICS_ONLY, Variants

STATISTICS: Variants = {
    "source": ("source", {}),
    "batch": ("bn", {}),
    "EMA on batches": ("grotta", {"balanced": False, **STATISTICS_ONLY}),
    "EMA on the bank": ("grotta", STATISTICS_ONLY),
}
RECIPE = accuracy_recipe(
    name="fig-statistics",
    title="Normalisation statistics",
    about="In the paper, whose mean and variance the norm layers use decides most of the accuracy.",
    variants=STATISTICS,
    caption="Figure 4a: four kinds of normalisation statistics, nothing trained.",
)
