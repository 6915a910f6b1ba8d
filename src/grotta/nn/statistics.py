"""Channel statistics of a feature map, in one pass."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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
        mean, var = torch.batch_norm_update_stats(x, scratch, scratch.clone(), 0.0)
    else:
        mean, var = torch.batch_norm_update_stats(x, None, None, 0.0)
    return mean, var


def differentiable_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`channel_statistics`, with the gradient through both.

    >>> x = torch.tensor([[1.0], [3.0]], requires_grad=True)
    >>> mean, var = differentiable_statistics(x)
    >>> torch.autograd.grad(var, x)
    (tensor([[-1.],
            [ 1.]]),)
    """
    dims = [d for d in range(x.ndim) if d != 1]
    if torch.compiler.is_compiling():
        var, mean = torch.var_mean(x.to(torch.promote_types(x.dtype, torch.float32)), dims, correction=0)
        return mean, var
    mean, var = _Moments.apply(x, dims, 0)  # type: ignore[no-untyped-call]
    return mean.flatten(), var.flatten()


def instance_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and *unbiased* variance over the positions of every image and channel of ``x`` (B, C, ...): (B, C) each.

    >>> mean, var = instance_statistics(torch.tensor([[[1.0, 3.0]]]))
    >>> mean.item(), var.item()
    (2.0, 2.0)
    """
    dims = list(range(2, x.ndim))
    if torch.compiler.is_compiling():
        var, mean = torch.var_mean(x.to(torch.promote_types(x.dtype, torch.float32)), dims)
        return mean, var
    mean, var = _Moments.apply(x, dims, 1)  # type: ignore[no-untyped-call]
    return mean.flatten(1), var.flatten(1)


class _Moments(torch.autograd.Function):
    """Mean and variance of ``x`` over ``dims``, which are kept; much faster than ``var_mean``, one pass backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dims: list[int], correction: int) -> tuple[Tensor, Tensor]:
        ctx.count = math.prod(x.shape[d] for d in dims)
        ctx.freedom = ctx.count - correction
        if 0 in dims:
            mean, var = (per_channel(v, x) for v in channel_statistics(x))
        else:
            wide = x.to(torch.promote_types(x.dtype, torch.float32))
            mean = wide.mean(dims, keepdim=True)
            var = (wide - mean).square_().sum(dims, keepdim=True) / ctx.freedom
        ctx.save_for_backward(x, mean)
        return mean, var

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_mean: Tensor, grad_var: Tensor) -> tuple[Tensor, None, None]:
        x, mean = ctx.saved_tensors
        slope = grad_var * (2 / ctx.freedom)
        return torch.addcmul(grad_mean / ctx.count - slope * mean, x, slope).to(x.dtype), None, None


def per_channel(v: Tensor, like: Tensor) -> Tensor:
    """Reshape a (C,) vector so that it broadcasts over ``like`` (B, C, ...)."""
    return v.view(1, -1, *[1] * (like.ndim - 2))
