"""Normalisation by the statistics of the current batch alone."""

import torch.nn.functional as F
from torch import Tensor

from grotta.nn.norm_base import AdaptiveNorm


class BatchStatsBN1d(AdaptiveNorm):
    """Batch normalisation of (B, C) or (B, C, L) by the batch's own mean and biased variance, always."""

    ranks: tuple[int, ...] = (2, 3)
    needs_running_statistics = False

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``; the running statistics are neither used nor moved."""
        self.check_input(x)
        if x.numel() == x.shape[1]:
            # One value per channel: torch refuses this, while the formula gives the bias.
            return x - x if self.bias is None else (x - x) + self.bias.view(1, -1, *[1] * (x.ndim - 2))
        return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)


class BatchStatsBN2d(BatchStatsBN1d):
    """Batch normalisation of (B, C, H, W) by the batch's own mean and biased variance, always."""

    ranks = (4,)
