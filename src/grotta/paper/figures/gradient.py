"""Figure 4b: global statistics with and without the gradient of training."""

from typing import Any

from grotta.bench.experiments import ENTROPY
from grotta.paper.one_domain import accuracy_recipe
from grotta.paper.variants import Variants

_BANK: dict[str, Any] = {"learns_from": "bank", "statistics": "tracked", "capacity": 1024}
GRADIENT: Variants = {
    "without gradient preserving": (ENTROPY, {**_BANK, "gradient": "none"}),
    "with gradient preserving": (ENTROPY, {**_BANK, "gradient": "exact"}),
}
RECIPE = accuracy_recipe(
    name="fig-gradient",
    title="Gradient preserving",
    about="Global statistics are constants to the gradient; in the paper, preserving its form of training makes "
    "learning stable.",
    variants=GRADIENT,
    caption="Figure 4b: entropy minimisation on random batches of the category-balanced bank, statistics tracked on "
    "the same batches.",
)
