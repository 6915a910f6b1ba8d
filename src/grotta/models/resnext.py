"""ResNeXt for 32x32 images (Xie et al., 2017).

Parameter names are those of the published RobustBench file ``Hendrycks2020AugMix_ResNeXt`` (CIFAR-100), whose
input is normalised to [-1, 1].
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import HALF, InputNorm
from grotta.models.resnet import projection


class ResNeXtBlock(nn.Module):
    """1x1 reduce, grouped 3x3, 1x1 expand, with a skip connection."""

    def __init__(self, width_in: int, width_out: int, inner: int, groups: int, stride: int) -> None:
        super().__init__()
        self.conv_reduce = nn.Conv2d(width_in, inner, 1, bias=False)
        self.bn_reduce = nn.BatchNorm2d(inner)
        self.conv_conv = nn.Conv2d(inner, inner, 3, stride, padding=1, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(inner)
        self.conv_expand = nn.Conv2d(inner, width_out, 1, bias=False)
        self.bn_expand = nn.BatchNorm2d(width_out)
        self.downsample = projection(width_in, width_out, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn_reduce(self.conv_reduce(x)))
        out = F.relu(self.bn(self.conv_conv(out)))
        return F.relu(self.downsample(x) + self.bn_expand(self.conv_expand(out)))


class CifarResNeXt(nn.Module):
    """ResNeXt-``depth`` with ``cardinality`` groups of ``base_width``; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> CifarResNeXt(11, 2, 8, num_classes=100)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 100])
    """

    def __init__(self, depth: int, cardinality: int, base_width: int, num_classes: int) -> None:
        super().__init__()
        self.input_norm = InputNorm(HALF)
        self.conv_1_3x3 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.bn_1 = nn.BatchNorm2d(64)
        blocks, inner = (depth - 2) // 9, base_width * cardinality
        self.stage_1 = _stage(64, 256, inner, cardinality, blocks, stride=1)
        self.stage_2 = _stage(256, 512, 2 * inner, cardinality, blocks, stride=2)
        self.stage_3 = _stage(512, 1024, 4 * inner, cardinality, blocks, stride=2)
        self.classifier = nn.Linear(1024, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = F.relu(self.bn_1(self.conv_1_3x3(self.input_norm(images))))
        maps = self.stage_3(self.stage_2(self.stage_1(maps)))
        logits: Tensor = self.classifier(maps.mean(dim=(2, 3)))
        return logits


def _stage(width_in: int, width_out: int, inner: int, groups: int, blocks: int, stride: int) -> nn.Sequential:
    first = ResNeXtBlock(width_in, width_out, inner, groups, stride)
    rest = (ResNeXtBlock(width_out, width_out, inner, groups, 1) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


def resnext29_4x32d(num_classes: int = 100) -> CifarResNeXt:
    """ResNeXt-29 4x32d, 6.9 million parameters."""
    return CifarResNeXt(29, 4, 32, num_classes)
