"""Robust batch normalisation, with and without the gradient form of training (GpreRBN and RBN)."""

from typing import Any, Literal, NamedTuple, Self, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_in_unit_interval, check_one_of
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.statistics import channel_statistics, differentiable_statistics, per_channel

Gradient = Literal["exact", "literal", "none"]


def check_gradient(gradient: Gradient) -> Gradient:
    """One of the three forms of the gradient."""
    return check_one_of("gradient", gradient, get_args(Gradient))


class _Statistics(NamedTuple):
    """Those of the batch and the global ones, (C,) each, and what is added to variances."""

    mean_b: Tensor
    var_b: Tensor
    mean_g: Tensor
    var_g: Tensor
    eps: float


class _GradientPreserving(torch.autograd.Function):
    """gamma (sg(s_b) (F - mu_b)/s_b + sg(mu_b) - mu_g)/s_g + beta, one pass forward and one backward.

    The value is batch normalisation with the global statistics. The gradient is that of training-mode batch
    normalisation with weight gamma s_b/s_g, so the fused kernel of the latter computes it.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: _Statistics) -> Tensor:
        mean_b, var_b, mean_g, var_g, eps = statistics
        inv_b, inv_g = (var_b + eps).rsqrt(), (var_g + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean_b, inv_b, inv_g / inv_b, (mean_b - mean_g) * inv_g)
        ctx.eps = eps
        return F.batch_norm(x, mean_g, var_g, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean_b, inv_b, ratio, shift = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        scale = ratio if weight is None else weight * ratio
        # Without weight or bias gradients the kernel still reduces both, so ask for all three at once.
        grad_x, grad_w, grad_b = torch.ops.aten.native_batch_norm_backward(
            grad, x, scale, None, None, mean_b, inv_b, True, ctx.eps, [needs_x, True, True]
        )
        grad_weight = torch.addcmul(grad_w * ratio, grad_b, shift) if needs_weight else None
        return (grad_x if needs_x else None), grad_weight, (grad_b if needs_bias else None), None


class _ThroughAlpha(torch.autograd.Function):
    """gamma (F - mu_g)/s_g + beta, where mu_g and s_g^2 move with the batch's by alpha, which the gradient follows.

    With g the gradient of the output, N values per channel, A = gamma/s_g and means over the channel,
    dF = A (g - alpha mean(g) - alpha (F - mu_b)/s_g^2 mean(g (F - mu_g))): two reductions and an affine map.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: _Statistics, alpha: float
    ) -> Tensor:
        mean_b, var_b, mean_g, var_g, eps = statistics
        ctx.save_for_backward(x, weight, mean_b, (var_b + eps).rsqrt(), mean_b - mean_g, (var_g + eps).rsqrt())
        ctx.alpha, ctx.eps = alpha, eps
        return F.batch_norm(x, mean_g, var_g, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean_b, inv_b, offset, inv_g = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        _, along, total = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, None, None, mean_b, inv_b, True, ctx.eps, [False, True, True]
        )
        along = along / inv_b + offset * total  # the sum of g (F - mu_g)
        grad_x = None
        if needs_x:
            share = ctx.alpha * x.shape[1] / x.numel()
            a = inv_g if weight is None else weight * inv_g
            b = -share * a * inv_g.square() * along
            c = -share * a * total - b * mean_b
            a, b, c = (per_channel(v, x) for v in (a, b, c))
            grad_x = torch.addcmul(c, x, b).addcmul_(a, grad).to(x.dtype)
        return grad_x, (along * inv_g if needs_weight else None), (total if needs_bias else None), None, None


def preserve_gradient(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: tuple[Tensor, Tensor],
    used: tuple[Tensor, Tensor],
    eps: float,
) -> Tensor:
    """Batch normalisation by the mean and variance that are ``used``, with the gradient of training mode.

    ``batch`` are those of ``x`` itself.
    """
    statistics = _Statistics(*batch, *used, eps)
    if torch.compiler.is_compiling():
        return _as_training_mode(x, weight, bias, statistics)
    out: Tensor = _GradientPreserving.apply(x, weight, bias, statistics)  # type: ignore[no-untyped-call]
    return out


def _as_training_mode(x: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: _Statistics) -> Tensor:
    """The same as training-mode batch normalisation with weight gamma s_b/s_g and bias gamma (mu_b - mu_g)/s_g + beta.

    A compiler, which sees the statistics in here and outside and computes them once, makes the most of this form;
    eagerly they would be computed twice.
    """
    mean_b, var_b, mean_g, var_g, eps = statistics
    inv_g = (var_g + eps).rsqrt()
    scale, shift = (var_b + eps).sqrt() * inv_g, (mean_b - mean_g) * inv_g
    if weight is not None and bias is not None:
        scale, shift = weight * scale, weight * shift + bias
    return torch.batch_norm(x, scale, shift, None, None, True, 0.0, eps, True)


class RobustBatchNorm(AdaptiveNorm):
    """Batch normalisation with global statistics that follow the batches it is told to track.

    With ``tracking`` on, a batch first moves ``(running_mean, running_var)`` by an exponential moving average
    with momentum ``alpha`` and is then normalised by the moved ones; with it off they are used as they are.
    ``tracking`` alone decides: ``train()`` and ``eval()`` do not matter.

    ``gradient`` chooses what flows back, the value being the same: ``"exact"`` has the form of training-mode
    batch normalisation, ``"literal"`` is exactly the paper's equation (its sg(mu) inside the division
    adds a gradient through the batch deviation), ``"none"`` lets it flow through alpha times the batch
    statistics (RBN).
    """

    def __init__(
        self,
        num_features: int,
        *,
        eps: float = 1e-5,
        affine: bool = True,
        alpha: float = 0.05,
        gradient: Gradient = "exact",
        **factory: Any,
    ) -> None:
        super().__init__(num_features, eps=eps, affine=affine, **factory)
        self.alpha = check_in_unit_interval("alpha", alpha)
        self.gradient = check_gradient(gradient)
        self.tracking = False

    @classmethod
    def from_bn(cls, bn: _BatchNorm, alpha: float = 0.05, gradient: Gradient | None = None, **options: Any) -> Self:
        if gradient is not None:
            options["gradient"] = gradient
        return super().from_bn(bn, alpha=alpha, **options)

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        if not (torch.is_grad_enabled() and self._depends_on_trained(x)):
            if self.tracking:
                self._track(*channel_statistics(x))
            return self._normalise(x)
        if self.gradient == "none":
            return self._through_alpha(x) if self.tracking else self._normalise(x)
        if self.gradient == "literal":
            return self._literal(x)
        batch = channel_statistics(x)
        if self.tracking:
            self._track(*batch)
        # A later batch moves the buffers in place; the backward of this one uses only what it derived from them.
        used = (self.running_mean, self.running_var)
        return preserve_gradient(x, self.weight, self.bias, batch, used, self.eps)

    def _depends_on_trained(self, x: Tensor) -> bool:
        return x.requires_grad or (self.weight is not None and self.weight.requires_grad)

    def _track(self, mean: Tensor, var: Tensor) -> None:
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.alpha)
        self.running_var.lerp_(var.to(self.running_var.dtype), self.alpha)

    def _normalise(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)

    def _through_alpha(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            mean, var = differentiable_statistics(x)
            mean = torch.lerp(self.running_mean, mean.to(self.running_mean.dtype), self.alpha)
            var = torch.lerp(self.running_var, var.to(self.running_var.dtype), self.alpha)
            self.running_mean.copy_(mean.detach())
            self.running_var.copy_(var.detach())
            return self._affine((x - per_channel(mean, x)) * per_channel((var + self.eps).rsqrt(), x), x)
        batch = channel_statistics(x)
        self._track(*batch)
        statistics = _Statistics(*batch, self.running_mean, self.running_var, self.eps)
        out: Tensor = _ThroughAlpha.apply(x, self.weight, self.bias, statistics, self.alpha)  # type: ignore[no-untyped-call]
        return out

    def _literal(self, x: Tensor) -> Tensor:
        mean, var = differentiable_statistics(x)
        if self.tracking:
            self._track(mean.detach(), var.detach())
        s = (var + self.eps).sqrt()
        preserved = (x - per_channel(mean - mean.detach(), x)) * per_channel(s.detach() / s, x)
        inv_g = (self.running_var + self.eps).rsqrt()
        return self._affine((preserved - per_channel(self.running_mean, x)) * per_channel(inv_g, x), x)

    def _affine(self, normalised: Tensor, x: Tensor) -> Tensor:
        if self.weight is not None and self.bias is not None:
            normalised = normalised * per_channel(self.weight, x) + per_channel(self.bias, x)
        return normalised.to(x.dtype)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, alpha={self.alpha}, gradient={self.gradient!r}, tracking={self.tracking}"


class GpreRBN1d(RobustBatchNorm):
    """Gradient-preserving robust batch normalisation of (B, C) or (B, C, L)."""

    ranks = (2, 3)


class GpreRBN2d(RobustBatchNorm):
    """Gradient-preserving robust batch normalisation of (B, C, H, W).

    >>> layer = GpreRBN2d.from_bn(torch.nn.BatchNorm2d(3), alpha=0.05)
    >>> layer.tracking = True
    >>> x = torch.full((4, 3, 2, 2), 10.0)
    >>> _ = layer(x)
    >>> layer.running_mean
    tensor([0.5000, 0.5000, 0.5000])
    """

    ranks = (4,)


class RBN1d(GpreRBN1d):
    """Robust batch normalisation without gradient preserving (RoTTA's), of (B, C) or (B, C, L)."""

    def __init__(self, num_features: int, *, gradient: Gradient = "none", **options: Any) -> None:
        super().__init__(num_features, gradient=gradient, **options)


class RBN2d(GpreRBN2d):
    """Robust batch normalisation without gradient preserving (RoTTA's), of (B, C, H, W)."""

    def __init__(self, num_features: int, *, gradient: Gradient = "none", **options: Any) -> None:
        super().__init__(num_features, gradient=gradient, **options)
