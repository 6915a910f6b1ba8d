"""What a batch shows to a norm layer, image by image."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from grotta.nn.gate import Observation
from grotta.nn.statistics import channel_statistics, per_channel

# Channels: fewer are not enough to keep a processor busy that adds up row by row, for a variance and for a sum.
_WIDE, _WIDE_SUMS = 1024, 64


class Shown(NamedTuple):
    """What one batch shows to one layer, image by image."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    between: Tensor  # (C,), of the means of the images, biased
    images: Tensor  # (B, C), the mean of each image

    def observation(self, mix: Tensor | None = None) -> Observation:
        """All of it together, with the mix (K,) of the images' classes."""
        return Observation(self.mean, self.var, self.between, self.images.shape[0], mix)


def shown_by(x: Tensor, dtype: torch.dtype) -> Shown:
    """What ``x`` (B, C, ...) shows, without gradient, in ``dtype``.

    >>> shown = shown_by(torch.tensor([[[1.0, 3.0]], [[5.0, 7.0]]]), torch.float64)
    >>> shown.mean.item(), shown.var.item(), shown.between.item(), shown.images.flatten().tolist()
    (4.0, 5.0, 4.0, [2.0, 6.0])
    """
    x = x.detach()
    rows = _rows(x)
    if x.ndim == 2:
        images = x.to(dtype)
    elif rows is not None:
        images = _means_of_rows(rows, x.shape[0], dtype)
    else:
        images = x.mean(list(range(2, x.ndim)), dtype=dtype)
    mean, between = channel_statistics(images)
    var = between if x.ndim == 2 else _variance(x, rows, mean)
    return Shown(mean, var, between, images)


def _rows(x: Tensor) -> Tensor | None:
    """A view (N, C) of ``x`` (B, C, H, W) on a CPU in channels_last, position by position; of another, None."""
    if x.ndim != 4 or x.device.type != "cpu" or not x.is_contiguous(memory_format=torch.channels_last):
        return None
    return x.permute(0, 2, 3, 1).view(-1, x.shape[1])


def _abreast(count: int, channels: int, wide: int) -> int:
    """How many of ``count`` rows to put side by side, as if they were one with ``wide`` channels."""
    return math.gcd(count, max(wide // channels, 1))


def _means_of_rows(rows: Tensor, images: int, dtype: torch.dtype) -> Tensor:
    """The means (B, C) of images whose positions are ``rows`` (N, C), one image after the other."""
    channels, positions = rows.shape[1], rows.shape[0] // images
    abreast = _abreast(positions, channels, _WIDE_SUMS)
    sums = rows.view(images, -1, abreast * channels).sum(1, dtype=dtype)
    if abreast > 1:
        sums = sums.view(images, abreast, channels).sum(1)
    return sums.div_(positions)


def _variance(x: Tensor, rows: Tensor | None, mean: Tensor) -> Tensor:
    """The biased variance of every channel of ``x`` (B, C, ...), whose mean is known, and whose rows may be.

    Which of three ways is fastest differs by a factor of three and more, with the device and the memory format.
    """
    if x.device.type != "cpu":
        return channel_statistics(x)[1].to(mean.dtype)
    if rows is not None:
        return _variance_of_rows(rows, mean)
    dims = [d for d in range(x.ndim) if d != 1]
    return (x - per_channel(mean, x)).square_().mean(dims, dtype=mean.dtype)


def _variance_of_rows(rows: Tensor, mean: Tensor) -> Tensor:
    """The same of ``rows`` (N, C)."""
    channels = rows.shape[1]
    abreast = _abreast(rows.shape[0], channels, _WIDE)
    means, variances = channel_statistics(rows.view(-1, abreast * channels))
    if abreast == 1:
        return variances.to(mean.dtype)
    apart = means.view(abreast, channels) - mean
    return torch.addcmul(variances.view(abreast, channels), apart, apart).mean(0).to(mean.dtype)
