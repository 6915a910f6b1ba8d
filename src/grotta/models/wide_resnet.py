"""Wide residual networks for 32x32 images (Zagoruyko and Komodakis, 2016), pre-activation.

Parameter names are those of the published RobustBench file ``Standard`` (CIFAR-10), which takes its input in
[0, 1] without any normalisation.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class WideBlock(nn.Module):
    """Two pre-activated 3x3 convolutions; the shortcut is a 1x1 convolution where the width changes."""

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(width_in)
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width_out)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1, bias=False)
        self.convShortcut = nn.Conv2d(width_in, width_out, 1, stride, bias=False) if width_in != width_out else None

    def forward(self, x: Tensor) -> Tensor:
        """The skip connection starts after the activation where the width changes."""
        activated = F.relu(self.bn1(x))
        around: Tensor = x if self.convShortcut is None else self.convShortcut(activated)
        out: Tensor = self.conv2(F.relu(self.bn2(self.conv1(activated))))
        return around + out


class WideStage(nn.Module):
    """A run of :class:`WideBlock` under the published name ``layer``."""

    def __init__(self, width_in: int, width_out: int, blocks: int, stride: int) -> None:
        super().__init__()
        first = WideBlock(width_in, width_out, stride)
        self.layer = nn.Sequential(first, *(WideBlock(width_out, width_out, 1) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out


class WideResNet(nn.Module):
    """WRN-``depth``-``widen``; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> WideResNet(10, 1, num_classes=10)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, depth: int, widen: int, num_classes: int) -> None:
        super().__init__()
        blocks = (depth - 4) // 6
        widths = [16 * widen, 32 * widen, 64 * widen]
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.block1 = WideStage(16, widths[0], blocks, stride=1)
        self.block2 = WideStage(widths[0], widths[1], blocks, stride=2)
        self.block3 = WideStage(widths[1], widths[2], blocks, stride=2)
        self.bn1 = nn.BatchNorm2d(widths[2])
        self.fc = nn.Linear(widths[2], num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.block3(self.block2(self.block1(self.conv1(images))))
        logits: Tensor = self.fc(F.relu(self.bn1(maps)).mean(dim=(2, 3)))
        return logits


def wrn28_10(num_classes: int = 10) -> WideResNet:
    """WRN-28-10, 36.5 million parameters."""
    return WideResNet(28, 10, num_classes)
