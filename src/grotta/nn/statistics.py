"""Channel statistics of a feature map, in one pass."""

import torch
from torch import Tensor


def channel_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and *biased* variance of every channel of ``x`` (B, C, ...), without gradient.

    Half-precision features give float32 statistics: a mean over thousands of values needs them.

    >>> mean, var = channel_statistics(torch.tensor([[1.0], [3.0]]))
    >>> mean.item(), var.item()
    (2.0, 1.0)
    """
    x = x.detach()
    if torch.compiler.is_compiling():
        return differentiable_statistics(x)  # plain operations: a compiler fuses them with what is around
    if x.dtype in (torch.float16, torch.bfloat16):
        # The kernel returns the dtype of its running buffers; with momentum 0 it leaves them as they are.
        scratch = x.new_zeros(x.shape[1], dtype=torch.float32)
        mean, var = torch.ops.aten.batch_norm_update_stats(x, scratch, scratch.clone(), 0.0)
    else:
        mean, var = torch.ops.aten.batch_norm_update_stats(x, None, None, 0.0)
    return mean, var


def differentiable_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`channel_statistics`, with the gradient through both."""
    dims = [d for d in range(x.ndim) if d != 1]
    var, mean = torch.var_mean(x.to(torch.promote_types(x.dtype, torch.float32)), dims, correction=0)
    return mean, var


def per_channel(v: Tensor, like: Tensor) -> Tensor:
    """Reshape a (C,) vector so that it broadcasts over ``like`` (B, C, ...)."""
    return v.view(1, -1, *[1] * (like.ndim - 2))
