"""Laplacian output adaptation (LAME)."""

from torch import Tensor

from grotta import functional as GF
from grotta.outputs.base import Output, OutputAdaptation, unrefined
from grotta.outputs.registry import register


@register("laplacian")
class Laplacian(OutputAdaptation):
    """Let similar samples of a batch agree on a label, whatever the batch.

    Args:
        num_classes: of the predictions.
        affinity: ``"knn"``, ``"rbf"`` or ``"linear"``.
        k: number of neighbours; for ``"rbf"``, those that set the width.

    See :func:`grotta.functional.laplacian_refine`.
    """

    def __init__(self, num_classes: int, *, affinity: str = "knn", k: int = 5) -> None:
        super().__init__(num_classes)
        self.affinity, self.k = affinity, k
        self._try_options()

    def refine(self, probs: Tensor, features: Tensor) -> Output:
        refined = GF.laplacian_refine(probs, features, affinity=self.affinity, k=self.k)
        return unrefined(probs)._replace(probs=refined)
