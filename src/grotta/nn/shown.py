"""What a batch shows to a norm layer, image by image."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from grotta.nn.gate import Observation
from grotta.nn.statistics import channel_statistics, per_channel

_WIDE = 512  # channels: fewer are not enough to keep a processor busy that adds up row by row


class Shown(NamedTuple):
    """What one batch shows to one layer, image by image."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    between: Tensor  # (C,), of the means of the images, biased
    images: Tensor  # (B, C), the mean of each image

    def observation(self, mix: Tensor | None = None) -> Observation:
        """All of it together, with the mix (K,) of the images' classes."""
        return Observation(self.mean, self.var, self.between, len(self.images), mix)


def shown_by(x: Tensor, dtype: torch.dtype) -> Shown:
    """What ``x`` (B, C, ...) shows, without gradient, in ``dtype``.

    >>> shown = shown_by(torch.tensor([[[1.0, 3.0]], [[5.0, 7.0]]]), torch.float64)
    >>> shown.mean.item(), shown.var.item(), shown.between.item(), shown.images.flatten().tolist()
    (4.0, 5.0, 4.0, [2.0, 6.0])
    """
    x = x.detach()
    images = x.mean(list(range(2, x.ndim)), dtype=dtype) if x.ndim > 2 else x.to(dtype)
    mean = images.mean(0)
    between = (images - mean).square_().mean(0)
    var = between if x.ndim == 2 else _variance(x, mean)
    return Shown(mean, var, between, images)


def _variance(x: Tensor, mean: Tensor) -> Tensor:
    """The biased variance of every channel of ``x`` (B, C, ...), whose mean is known.

    Which of three ways is fastest differs by a factor of three and more, with the device and the memory format.
    """
    if x.device.type != "cpu":
        return channel_statistics(x)[1].to(mean.dtype)
    if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return _variance_of_rows(x.permute(0, 2, 3, 1).flatten(0, 2), mean)
    dims = [d for d in range(x.ndim) if d != 1]
    return (x - per_channel(mean, x)).square_().mean(dims, dtype=mean.dtype)


def _variance_of_rows(rows: Tensor, mean: Tensor) -> Tensor:
    """The same of (N, C), several rows side by side as if they were one with more channels."""
    channels = rows.shape[1]
    abreast = math.gcd(len(rows), max(_WIDE // channels, 1))
    means, variances = (v.view(abreast, channels) for v in channel_statistics(rows.view(-1, abreast * channels)))
    apart = means - mean
    return torch.addcmul(variances, apart, apart).mean(0).to(mean.dtype)
