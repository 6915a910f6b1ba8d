"""ODS: test-time adaptation under open-world data shift (Zhou et al., 2023), a reconstruction."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_in_unit_interval
from grotta.methods.registry import register
from grotta.methods.tent import Tent


@register("ods")
class ODS(Tent):
    """A reconstruction: TENT that follows the stream's label distribution and lets rare labels count for more.

    A step on the batch X_t, with one pass of the network:

    1. Predict P with the statistics of X_t; the output is Z, P refined by the graph of the features.
    2. Track the label distribution: q <- momentum q + (1 - momentum) mean Z, from q = 1/C on.
    3. One gradient step on the affine parameters down the mean over X_t of w H(P), with H the entropy,
       w = 1 / (C q_y) and y = argmax Z.

    No code of ODS is public. Assumed here, where its paper leaves a choice or is ambiguous:

    - the base method is TENT, its statistics those of the batch, its optimizer Adam;
    - the tracker is this moving average, its momentum is 0.9, and the batch itself counts before it is weighted
      (so that no q_y of a label that occurs can be 0);
    - the refinement is LAME's, with its kNN affinity, k = 5;
    - the weights are not normalised over the batch: a balanced stream has weights near 1 and ODS is TENT there.

    Args:
        momentum: share of the past in the tracked label distribution.
        output: the refinement that gives Z, ``"laplacian"``; with ``None``, Z = P.
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with Nesterov momentum 0.9.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = ODS(net)
    >>> probs = adapter(torch.rand(4, 3, 16, 16))
    >>> torch.allclose(adapter.label_distribution, 0.9 / 5 + 0.1 * probs.mean(0))
    True
    """

    title, place, cost = "ODS", 60, 2.2
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    reconstruction = True
    label_distribution: Tensor

    def __init__(
        self, model: nn.Module, *, momentum: float = 0.9, output: str | None = "laplacian", **options: Any
    ) -> None:
        super().__init__(model, output=output, **options)
        self.momentum = check_in_unit_interval("momentum", momentum)

    def build(self) -> None:
        """As TENT, and a uniform label distribution."""
        super().build()
        uniform = torch.full((self.num_classes,), 1 / self.num_classes, dtype=self.wide, device=self.device)
        self.register_buffer("label_distribution", uniform)

    def objective(self, logits: Tensor, probs: Tensor) -> Tensor:
        """Mean entropy of the logits (B, classes), weighted by the rarity of the labels that went out."""
        self.label_distribution.lerp_(probs.mean(0), 1 - self.momentum)
        weights = 1 / (self.num_classes * self.label_distribution[probs.argmax(1)])
        return (weights * GF.softmax_entropy(logits)).mean()
