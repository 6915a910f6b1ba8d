"""Balanced batch normalisation (TRIBE): each class has its own statistics, and all classes count equally."""

import contextlib
from collections.abc import Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_between, check_in_unit_interval, check_whole
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.statistics import instance_statistics, per_channel


class BalancedBN1d(AdaptiveNorm):
    """Balanced batch normalisation of (B, C) or (B, C, L).

    Each class k has (mu_k, s2_k), at first the source's. Images with ``labels`` move them before they are normalised:
    for the n_k images of class k, with the momentum m = eta (1/n_k if n_k > 1/eta) and means over positions,
    D = m sum(x - mu_k) is added to mu_k, and m (sum (x - mu_k)^2 - n_k s2_k) - D^2 to s2_k; of both, the share
    ``gamma`` goes to all classes alike, as the mean over the classes present. Every image is normalised by
    mu = mean_k mu_k and s2 = mean_k s2_k + var_k mu_k (unbiased), through which the gradient flows. Without labels
    statistics stay as they are.
    """

    ranks: tuple[int, ...] = (2, 3)
    class_mean: Tensor
    class_var: Tensor

    def __init__(
        self, num_features: int, num_classes: int, *, eta: float = 0.01, gamma: float = 0.0, **options: Any
    ) -> None:
        super().__init__(num_features, **options)
        self.num_classes = check_whole("num_classes", num_classes, at_least=2)
        self.eta = check_between("eta", eta, 0, 1)
        self.gamma = check_in_unit_interval("gamma", gamma)
        self.labels: Tensor | None = None  # (B,) classes of the images to come
        self.register_buffer("class_mean", self.running_mean.repeat(num_classes, 1))
        self.register_buffer("class_var", self.running_var.repeat(num_classes, 1))

    @classmethod
    def from_bn(cls, bn: _BatchNorm, **options: Any) -> Self:
        new = super().from_bn(bn, **options)
        new.class_mean.copy_(new.running_mean)
        new.class_var.copy_(new.running_var)
        return new

    def forward(self, x: Tensor) -> Tensor:
        self.check_input(x)
        mean, var = (self.running_mean, self.running_var) if self.labels is None else self._move(x, self.labels)
        scale = (var + self.eps).rsqrt()
        shift = -mean * scale
        if self.weight is not None and self.bias is not None:
            scale, shift = scale * self.weight, shift * self.weight + self.bias
        return torch.addcmul(per_channel(shift, x), x, per_channel(scale, x)).to(x.dtype)

    def _move(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Move the statistics by ``x``; returns mean and variance over all classes, with their gradient.

        Tokens that were flattened into the batch, as LeViT does, are positions of their images.
        """
        if len(x) != len(labels):
            x = x.reshape(len(labels), -1, *x.shape[1:]).movedim(1, -1)
        means, variances = self._of_each_image(x)
        of_class = torch.nn.functional.one_hot(labels, self.num_classes).to(means.dtype).T  # (classes, B)
        count = of_class.sum(1, keepdim=True)
        momentum = torch.where(count * self.eta > 1, 1 / count.clamp_min(1), self.eta)
        deviation = means - self.class_mean[labels]
        step = momentum * (of_class @ deviation)  # (classes, C), 0 for those that are not there
        spread = momentum * (of_class @ (variances + deviation.square())) - step.square()
        own, present = 1 - self.gamma, (count > 0).sum()
        mean_k = self.class_mean + own * step + self.gamma * step.sum(0) / present
        var_k = self.class_var + own * (spread - momentum * count * self.class_var)
        var_k = var_k + self.gamma * (spread.sum(0) - (momentum * count).sum() * var_k) / present
        mean, var = mean_k.mean(0), var_k.mean(0) + mean_k.var(0)
        with torch.no_grad():
            for buffer, value in zip(self._statistics(), (mean_k, var_k, mean, var)):
                buffer.copy_(value)
        return mean, var

    def _of_each_image(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and *biased* variance over positions, (B, C) each."""
        positions = x[0, 0].numel()
        if positions == 1:
            return x.flatten(1), torch.zeros_like(x.flatten(1))
        means, variances = instance_statistics(x)
        return means, variances * ((positions - 1) / positions)

    def _statistics(self) -> tuple[Tensor, ...]:
        return self.class_mean, self.class_var, self.running_mean, self.running_var

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_classes={self.num_classes}, eta={self.eta}, gamma={self.gamma}"


class BalancedBN2d(BalancedBN1d):
    """Balanced batch normalisation of (B, C, H, W).

    >>> layer = BalancedBN2d.from_bn(nn.BatchNorm2d(3), num_classes=2, eta=0.25)
    >>> with labelled(layer, torch.tensor([1, 1])):
    ...     _ = layer(torch.full((2, 3, 2, 2), 10.0))
    >>> layer.class_mean, layer.running_mean
    (tensor([[0., 0., 0.],
            [5., 5., 5.]]), tensor([2.5000, 2.5000, 2.5000]))
    """

    ranks = (4,)


@contextlib.contextmanager
def labelled(network: nn.Module, labels: Tensor) -> Iterator[None]:
    """Tell every balanced layer of ``network`` in here that the images passing are of the classes ``labels`` (B,)."""
    layers = [module for module in network.modules() if isinstance(module, BalancedBN1d)]
    for layer in layers:
        layer.labels = labels
    try:
        yield
    finally:
        for layer in layers:
            layer.labels = None
