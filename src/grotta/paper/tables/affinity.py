"""Table 6: the feature graph of the output adaptation."""

from grotta.paper.printed import read_printed
from grotta.paper.variants import Variants, variant_recipe

AFFINITY: Variants = {
    **{f"sigma={sigma}": ("grotta", {"affinity": "rbf", "sigma": sigma}) for sigma in (0.1, 1.0, 2.5, 5.0)},
    # k = 5 is GRoTTA as it is: the same cell as in the main table
    **{f"k={k}": ("grotta", {} if k == 5 else {"k": k}) for k in (1, 5, 10, 15)},
}
RECIPE = variant_recipe(
    AFFINITY,
    name="table-affinity",
    title="Affinity matrices",
    about="Table 6: the feature graph of the output adaptation, kNN with k neighbours or RBF of width sigma.",
    table="error (%), mean over domains, with different affinity matrices by γ",
    header="Affinity",
    labels={row: f"RBF {row}" if row.startswith("sigma") else f"kNN {row}" for row in AFFINITY},
    beside="affinity",
    printed=read_printed(__file__),
)
