"""Input normalisation as part of the network, so that callers work in pixel space [0, 1]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Statistics = tuple[tuple[float, ...], tuple[float, ...]]

IMAGENET: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR10: Statistics = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR100: Statistics = ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761))
FASHION: Statistics = ((0.2190, 0.2190, 0.2190), (0.3318, 0.3318, 0.3318))
HALF: Statistics = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


class InputNorm(nn.Module):
    """``(x - mean) / std`` for each channel; (B, C, H, W) in, the same shape out.

    Mean and deviation are non-persistent buffers: they follow the model to its device, and published
    checkpoints, which lack them, keep their exact names.

    >>> InputNorm(((0.5,), (0.25,)))(torch.ones(1, 1, 1, 1)).item()
    2.0
    >>> list(InputNorm(IMAGENET).state_dict())
    []
    """

    mean: Tensor
    std: Tensor

    def __init__(self, statistics: Statistics) -> None:
        super().__init__()
        self.statistics = statistics
        for name, values in zip(("mean", "std"), statistics, strict=True):
            self.register_buffer(name, torch.empty(len(values), 1, 1), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Write the statistics into the buffers (again after the module was built on the meta device)."""
        for buffer, values in zip((self.mean, self.std), self.statistics, strict=True):
            buffer.copy_(torch.tensor(values).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std
