"""Figure 6d: bias-guided output adaptation against LAME's."""

from functools import partial

from grotta.paper.variants import STATISTICS_ONLY, Variants, lines_figure, variant_recipe

OUTPUTS: Variants = {
    "(b)": ("grotta", STATISTICS_ONLY),
    "(b) + laplacian": ("grotta", {**STATISTICS_ONLY, "output": "laplacian"}),
    "(b) + bias-guided": ("grotta", {**STATISTICS_ONLY, "output": "bias_guided"}),
}
CAPTION = "Figure 6d: the two output adaptations on the same balanced predictions, those of variant (b)."
RECIPE = variant_recipe(
    OUTPUTS,
    name="fig-output",
    title="Output adaptations",
    about="Bias-guided output adaptation against LAME's.",
    table="output adaptations on variant (b), error (%), mean over domains",
    figure=partial(lines_figure, title="Output adaptations", caption=CAPTION),
)
