"""PL: pseudo-labels (Lee, 2013), at test time."""

import torch.nn.functional as F
from torch import Tensor

from grotta.methods.registry import register
from grotta.methods.tent import Tent


@register("pl")
class PL(Tent):
    """TENT with another objective: the cross-entropy against the network's own hard labels, however unsure they are.

    L = mean over the batch of -log P_y with y = argmax P. Its only settings are TENT's.

    Args:
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with Nesterov momentum 0.9.
        **options: those of :class:`grotta.methods.Adapter`.
    """

    title, place, cost = "PL", 20, 2.0

    def objective(self, logits: Tensor, probs: Tensor) -> Tensor:
        """Mean cross-entropy of the logits (B, classes) against their own largest ones."""
        return F.cross_entropy(logits, logits.argmax(1))
