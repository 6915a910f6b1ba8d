"""RDumb: a simple approach that questions our progress in continual test-time adaptation (Press et al., 2023)."""

from typing import Any, ClassVar

from torch import Tensor, nn

from grotta._check import check_whole
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.eata import EATA
from grotta.methods.registry import register


@register("rdumb")
class RDumb(EATA):
    """EATA without anything that keeps it near the source, but reset to it every now and then.

    After every ``reset_every``-th batch the parameters, the optimizer and the mean of the predictions are reset.
    Nothing that goes wrong in between can last.

    Args:
        reset_every: batches from one reset to the next.
        margin, redundancy, lr, optimizer: as of :class:`EATA`.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> import torch
    >>> RDumb(net)(torch.rand(4, 3, 16, 16)).shape
    torch.Size([4, 5])
    """

    title, place, cost = "RDumb", 110, 2.3
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        name: {option: value for option, value in preset.items() if option != "beta"}
        for name, preset in EATA.presets.items()
    }

    def __init__(self, model: nn.Module, *, reset_every: int = 1000, **options: Any) -> None:
        super().__init__(model, **{"beta": 0.0, **options})
        self.reset_every = check_whole("reset_every", reset_every, at_least=1)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """As EATA; then, after every ``reset_every``-th batch, back to the source."""
        learned = super().learn(batch, prediction, probs)
        if (self.step + 1) % self.reset_every == 0:
            self.origin.restore_(self.optimizer)
            self.mean_probs.zero_()
        return learned
