"""BN: normalise by the statistics of the current batch (Nado et al., 2020)."""

from typing import Any

from torch import Tensor, nn

from grotta.methods.base import Adapter, Prediction
from grotta.methods.registry import register
from grotta.nn import batch_stats


@register("bn")
class BN(Adapter):
    """Batch statistics in every norm layer, nothing trained. Good on balanced batches, poor on biased ones."""

    title, place, cost = "BN", 10, 1.0

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__(model, **options)
        self.reset()

    def build(self) -> None:
        """One network whose norm layers look at the batch alone."""
        self.student = self.network(batch_stats())

    def infer(self, inputs: Tensor) -> Prediction:
        return Prediction(*self.student(inputs))
