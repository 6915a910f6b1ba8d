"""Residual networks for ImageNet (He et al., 2016) with torchvision's parameter names and input statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import IMAGENET, InputNorm


def projection(width_in: int, width_out: int, stride: int) -> nn.Module:
    """The shortcut around a block: nothing, or a 1x1 convolution and batch norm where the shape changes."""
    if stride == 1 and width_in == width_out:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(width_in, width_out, 1, stride, bias=False), nn.BatchNorm2d(width_out))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a skip connection."""

    expansion = 1

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = projection(width_in, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.downsample(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 (which carries the stride) and 1x1 convolutions with a skip connection."""

    expansion = 4

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = projection(width_in, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + self.downsample(x))


Block = type[BasicBlock] | type[Bottleneck]


class ResNet(nn.Module):
    """ResNet of four stages with ``blocks`` blocks each; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)(torch.rand(1, 3, 64, 64)).shape
    torch.Size([1, 5])
    """

    def __init__(self, block: Block, blocks: Sequence[int], num_classes: int) -> None:
        super().__init__()
        self.input_norm = InputNorm(IMAGENET)
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        wide = block.expansion
        self.layer1 = _stage(block, 64, 64, blocks[0], stride=1)
        self.layer2 = _stage(block, 64 * wide, 128, blocks[1], stride=2)
        self.layer3 = _stage(block, 128 * wide, 256, blocks[2], stride=2)
        self.layer4 = _stage(block, 256 * wide, 512, blocks[3], stride=2)
        self.fc = nn.Linear(512 * wide, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.maxpool(F.relu(self.bn1(self.conv1(self.input_norm(images)))))
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        logits: Tensor = self.fc(maps.mean(dim=(2, 3)))
        return logits


def _stage(block: Block, width_in: int, width: int, count: int, stride: int) -> nn.Sequential:
    wide = width * block.expansion
    return nn.Sequential(block(width_in, width, stride), *(block(wide, width, 1) for _ in range(count - 1)))


_LAYOUTS: dict[int, tuple[Block, tuple[int, ...]]] = {
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
    101: (Bottleneck, (3, 4, 23, 3)),
}


def imagenet_resnet(depth: int) -> Callable[[int], ResNet]:
    """The builder of ResNet-``depth`` (18, 34, 50 or 101)."""
    block, blocks = _LAYOUTS[depth]

    def build(num_classes: int = 1000) -> ResNet:
        return ResNet(block, blocks, num_classes)

    return build
