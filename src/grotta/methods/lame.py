"""LAME: parameter-free online test-time adaptation (Boudiaf et al., 2022)."""

from typing import Any, ClassVar

from torch import Tensor, nn

from grotta.methods.base import Adapter, Prediction
from grotta.methods.registry import register


@register("lame")
class LAME(Adapter):
    """The source model with its predictions, not its parameters, adapted: similar samples of a batch agree on a label.

    The output minimises sum(u Y) - sum(Y^T K Y) + sum(Y log Y) over label assignments Y, where u = -log P are the
    source model's predictions and K is the affinity of its features: ``grotta.functional.laplacian_refine``.

    Args:
        output: ``"laplacian"``; with any other, little remains of the method.
        affinity: ``"knn"``, ``"rbf"`` or ``"linear"``.
        k: number of neighbours; for ``"rbf"``, those that set the width.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> import torch
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    >>> LAME(net, k=3)(torch.rand(4, 3, 2, 2)).shape
    torch.Size([4, 5])
    """

    title, place, cost = "LAME", 40, 1.2
    adapts_nothing = True
    # The authors chose among their three affinities on each model; the one set in their released code is rbf.
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {"affinity": "rbf", "k": 5}}

    def __init__(self, model: nn.Module, *, output: str | None = "laplacian", **options: Any) -> None:
        super().__init__(model, output=output, **options)
        self.reset()

    def build(self) -> None:
        self.source = self.fixed_network()

    def infer(self, inputs: Tensor) -> Prediction:
        return Prediction(*self.source(inputs))
