"""Mean and variance of the features of each class, gathered batch by batch."""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class ClassMoments(NamedTuple):
    """Of the samples of each class seen so far."""

    samples: Tensor  # (classes, 1), how many
    mean: Tensor  # (classes, d)
    var: Tensor  # (classes, d), unbiased, 0 for fewer than two samples


def class_moments(features: Tensor, labels: Tensor, num_classes: int) -> ClassMoments:
    """Moments of ``features`` (B, d) of the classes ``labels`` (B,).

    >>> import torch
    >>> moments = class_moments(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), 2)
    >>> moments.samples.T, moments.mean.T, moments.var.T
    (tensor([[2., 1.]]), tensor([[2., 5.]]), tensor([[2., 0.]]))
    """
    of_class = F.one_hot(labels, num_classes).to(features.dtype).T
    count = of_class.sum(1, keepdim=True)
    mean = (of_class @ features) / count.clamp_min(1)
    squares = of_class @ (features - mean[labels]).square()
    return ClassMoments(count, mean, squares / (count - 1).clamp_min(1))


def merge(left: ClassMoments, right: ClassMoments) -> ClassMoments:
    """Moments of the samples of both.

    >>> import torch
    >>> x, y = torch.randn(20, 3), torch.arange(20) % 4
    >>> merged = merge(class_moments(x[:9], y[:9], 4), class_moments(x[9:], y[9:], 4))
    >>> all(torch.allclose(a, b, atol=1e-6) for a, b in zip(merged, class_moments(x, y, 4)))
    True
    """
    count = left.samples + right.samples
    share = right.samples / count.clamp_min(1)
    apart = right.mean - left.mean
    squares = left.var * (left.samples - 1).clamp_min(0) + right.var * (right.samples - 1).clamp_min(0)
    squares = squares + apart.square() * left.samples * share
    return ClassMoments(count, left.mean + apart * share, squares / (count - 1).clamp_min(1))
