"""GpreRBN as its equation reads, one operation after the other: what `grotta.nn.GpreRBN2d` must equal, slowly."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ReferenceGpreRBN(nn.Module):
    """gamma (sg(s_b) (F - mu_b)/s_b + sg(mu_b) - mu_g)/s_g + beta, with (mu_g, s_g^2) following the batches."""

    def __init__(self, channels: int, alpha: float = 0.05, eps: float = 1e-5) -> None:
        super().__init__()
        self.alpha, self.eps = alpha, eps
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.register_buffer("mean", torch.zeros(1, channels, 1, 1))
        self.register_buffer("var", torch.ones(1, channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        mean_b = x.mean((0, 2, 3), keepdim=True)
        var_b = x.var((0, 2, 3), unbiased=False, keepdim=True)
        self.mean = (1 - self.alpha) * self.mean + self.alpha * mean_b.detach()
        self.var = (1 - self.alpha) * self.var + self.alpha * var_b.detach()
        s_b, s_g = (var_b + self.eps).sqrt(), (self.var + self.eps).sqrt()
        kept = s_b.detach() * (x - mean_b) / s_b + mean_b.detach()
        return self.weight * (kept - self.mean) / s_g + self.bias
