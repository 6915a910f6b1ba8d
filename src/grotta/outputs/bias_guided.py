"""Bias-guided output adaptation (GRoTTA)."""

from torch import Tensor

from grotta import functional as GF
from grotta.outputs.base import Output, OutputAdaptation
from grotta.outputs.registry import register


@register("bias_guided")
class BiasGuided(OutputAdaptation):
    """Let similar samples agree on a label, more strongly the more biased the batch is.

    Args:
        num_classes: of the predictions.
        k: number of neighbours of the ``"knn"`` affinity.
        affinity: ``"knn"`` or ``"rbf"``.
        sigma: width of the ``"rbf"`` affinity.
        lam: a fixed weight of the feature graph in [0, 1); by default it follows the imbalance of the batch.

    See :func:`grotta.functional.bias_guided_refine`.
    """

    def __init__(
        self, num_classes: int, *, k: int = 5, affinity: str = "knn", sigma: float = 1.0, lam: float | None = None
    ) -> None:
        super().__init__(num_classes)
        self.k, self.affinity, self.sigma, self.lam = k, affinity, sigma, lam
        self._try_options()

    def refine(self, probs: Tensor, features: Tensor) -> Output:
        refined = GF.bias_guided_refine(
            probs, features, k=self.k, affinity=self.affinity, sigma=self.sigma, lam=self.lam
        )
        return Output(*refined)
