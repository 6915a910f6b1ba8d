"""Source: the model as it is."""

from typing import Any

from torch import Tensor, nn

from grotta.methods.base import Adapter, Prediction
from grotta.methods.registry import register


@register("source")
class Source(Adapter):
    """No adaptation: running statistics, no gradient. The baseline for all others."""

    title, place, cost = "Source", 0, 1.0
    adapts_nothing = True

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__(model, **options)
        self.reset()

    def build(self) -> None:
        self.source = self.fixed_network()

    def infer(self, inputs: Tensor) -> Prediction:
        return Prediction(*self.source(inputs))
