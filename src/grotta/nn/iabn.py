"""Instance-aware batch normalisation (NOTE): an instance is corrected only if it clearly differs."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from grotta._check import check_at_least, check_in_unit_interval
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.statistics import differentiable_statistics, instance_statistics, per_channel


class IABN1d(AdaptiveNorm):
    """IABN of (B, C) or (B, C, L).

    With instance statistics (m_i, v_i; unbiased over positions) and reference statistics (m_b, v_b),
    m = m_b + softshrink(m_i - m_b, k s_m) and v = relu(v_b + softshrink(v_i - v_b, k s_v)), where
    s_m = sqrt((v_b + eps)/L) and s_v = (v_b + eps) sqrt(2/(L - 1)). The reference is the batch (with ``tracking``
    on, which also moves the running statistics with momentum ``alpha``) or the running statistics. Features with
    a single position have no instance statistics and are normalised by the reference alone.
    """

    ranks: tuple[int, ...] = (2, 3)

    def __init__(
        self,
        num_features: int,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        k: float = 4.0,
        alpha: float = 0.01,
        **factory: Any,
    ) -> None:
        super().__init__(num_features, eps=eps, affine=affine, **factory)
        self.k = check_at_least("k", k, 0)
        self.alpha = check_in_unit_interval("alpha", alpha)
        self.tracking = False

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        mean_b, var_b = self._reference(x)
        positions = x[0, 0].numel()
        if positions <= 1:
            mean, var = per_channel(mean_b, x), per_channel(var_b, x)
        else:
            mean_i, var_i = instance_statistics(x)
            noise = var_b + self.eps
            mean = mean_b + _softshrink(mean_i - mean_b, self.k * (noise / positions).sqrt())
            var = F.relu(var_b + _softshrink(var_i - var_b, self.k * noise * (2 / (positions - 1)) ** 0.5))
            shape = (*mean.shape, *[1] * (x.ndim - 2))
            mean, var = mean.view(shape), var.view(shape)
        scale = (var + self.eps).rsqrt()
        shift = -mean * scale
        if self.weight is not None and self.bias is not None:
            weight = per_channel(self.weight, x)
            scale, shift = scale * weight, shift * weight + per_channel(self.bias, x)
        return torch.addcmul(shift, x, scale).to(x.dtype)  # one pass over the activations

    def _reference(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self.tracking:
            return self.running_mean, self.running_var
        mean, var = differentiable_statistics(x)
        count = x.numel() // x.shape[1]
        with torch.no_grad():  # as torch does: biased for the batch, unbiased for the running variance
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.alpha)
            unbiased = var * (count / max(count - 1, 1))
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.alpha)
        return mean, var

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, k={self.k}, alpha={self.alpha}, tracking={self.tracking}"


class IABN2d(IABN1d):
    """IABN of (B, C, H, W).

    >>> layer = IABN2d.from_bn(torch.nn.BatchNorm2d(2), k=4.0)
    >>> layer(torch.randn(1, 2, 4, 4)).shape
    torch.Size([1, 2, 4, 4])
    """

    ranks = (4,)


def _softshrink(x: Tensor, threshold: Tensor) -> Tensor:
    """Softshrink with a threshold for each channel, which ``F.softshrink`` does not take."""
    return x - x.clamp(-threshold, threshold)
