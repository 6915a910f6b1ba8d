"""Evaluation-mode batch normalisation, in the way that is fastest for a memory format."""

import torch
import torch.nn.functional as F
from torch import Tensor

from grotta.nn.statistics import per_channel


def normalise(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """``F.batch_norm`` of ``x`` (B, C, ...) by given statistics (C,).

    On a CPU, in channels_last, it is half as fast as the plain multiplication and addition that it comes to.

    >>> x, mean, var = torch.tensor([[3.0]]), torch.tensor([1.0]), torch.tensor([4.0])
    >>> normalise(x, mean, var, None, None, 0.0)
    tensor([[1.]])
    """
    rows = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if not rows or x.device.type != "cpu" or x.dtype != mean.dtype:
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else torch.addcmul(bias, mean, scale, value=-1)
    return torch.addcmul(per_channel(shift, x), x, per_channel(scale, x))
