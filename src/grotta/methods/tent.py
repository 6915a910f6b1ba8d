"""TENT: fully test-time adaptation by entropy minimisation (Wang et al., 2021)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_positive
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import trained_affine
from grotta.nn import Network, batch_stats


@register("tent")
class Tent(Adapter):
    """Make the network more certain: one step down the entropy of its own predictions for every batch.

    A step on the batch X_t, with one pass of the network:

    1. Predict P with the statistics of X_t in every norm layer; the output is P, as it was before the update.
    2. One gradient step on the affine parameters of the norm layers down the mean over X_t of -sum_c P_c log P_c.

    Args:
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with Nesterov momentum 0.9.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = Tent(net)
    >>> probs = adapter(torch.rand(4, 3, 16, 16))
    >>> adapter.last.adapted, abs(adapter.last.loss - adapter.last.entropy) < 1e-4
    (True, True)
    """

    title, place, cost = "TENT", 30, 2.0
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "official-imagenet": {"optimizer": "sgd", "lr": 2.5e-4},
    }
    trains_on_prediction = True
    nesterov: ClassVar[bool] = True  # which momentum "sgd" has
    optimizer: torch.optim.Optimizer

    def __init__(self, model: nn.Module, *, lr: float = 1e-3, optimizer: str = "adam", **options: Any) -> None:
        super().__init__(model, **options)
        self.lr = check_positive("lr", lr)
        self.optimizer_kind = optimizer
        self.reset()

    def build(self) -> None:
        """One network on batch statistics, an optimizer for its affine parameters."""
        self.student = self.network(batch_stats())
        self._trained = list(self.trained_in(self.student).values())
        self.optimizer = make_optimizer(self.optimizer_kind, self._trained, self.lr, nesterov=self.nesterov)

    def trained_in(self, network: Network) -> dict[str, nn.Parameter]:
        """The parameters of ``network`` that a step moves, by name; nothing else in it is left to be trained."""
        return trained_affine(network)

    def infer(self, inputs: Tensor) -> Prediction:
        return Prediction(*self.student(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down the objective of the prediction that was just made."""
        with torch.enable_grad():
            loss = self.objective(prediction.logits.to(self.wide), probs)
        return Learned(adapted=True, loss=descend(self.optimizer, loss))

    def objective(self, logits: Tensor, probs: Tensor) -> Tensor:
        """What a step makes smaller, given the logits (B, classes) and the probabilities that went out."""
        return GF.softmax_entropy(logits).mean()
