"""The residual network with group norms of MEMO and TTT (Sun et al., 2020) for CIFAR-10: ``cifar10_rn26_gn.pth``.

Pre-activation blocks; the shortcut around those that halve the resolution is average pooling, with zeros for the new
channels. As in the published files, norm layers are named ``bn``.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import HALF, InputNorm

GROUPS = 8


class PreActivationBlock(nn.Module):
    """Norm, ReLU and 3x3 convolution, twice, with a skip connection."""

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.stride, self.new_channels = stride, width_out - width_in
        self.bn1 = nn.GroupNorm(GROUPS, width_in)
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)
        self.bn2 = nn.GroupNorm(GROUPS, width_out)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv2(F.relu(self.bn2(self.conv1(F.relu(self.bn1(x))))))
        if self.stride > 1:
            x = F.avg_pool2d(x, self.stride)
        return out + F.pad(x, (0, 0, 0, 0, 0, self.new_channels))


class GroupNormResNet(nn.Module):
    """ResNet of ``depth = 6 n + 2`` layers with GroupNorm(8); (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> GroupNormResNet(8, 10)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, depth: int, num_classes: int) -> None:
        super().__init__()
        self.input_norm = InputNorm(HALF)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        blocks = (depth - 2) // 6
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(
                PreActivationBlock(before, width, stride),
                *(PreActivationBlock(width, width, 1) for _ in range(blocks - 1)),
            )
            for before, width, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        )
        self.bn = nn.GroupNorm(GROUPS, 64)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.layer3(self.layer2(self.layer1(self.conv1(self.input_norm(images)))))
        logits: Tensor = self.fc(F.relu(self.bn(maps)).mean(dim=(2, 3)))
        return logits


def resnet26_gn(num_classes: int = 10) -> GroupNormResNet:
    """ResNet-26 with group norms."""
    return GroupNormResNet(26, num_classes)
