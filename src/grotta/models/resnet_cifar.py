"""The original residual networks for CIFAR (He et al., 2016): 20, 32, 44, 56 and 110 layers.

Two published families differ in the shortcut around a block that halves the resolution, in the name of the last
layer and in the input statistics:

==================== =========================================== ============ ===============================
name                 shortcut                                    last layer   input statistics
==================== =========================================== ============ ===============================
``resnet20`` ...     every second pixel, zeros for new channels  ``linear``   ImageNet's
                     ("option A")
``resnet20_proj`` ...1x1 convolution and batch norm              ``fc``       CIFAR-10's for 10 classes, else
                                                                              CIFAR-100's
==================== =========================================== ============ ===============================

The first are the files of ``akamaster/pytorch_resnet_cifar10``, the second of ``chenyaofo/pytorch-cifar-models``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import CIFAR100, IMAGENET, InputNorm, Statistics
from grotta.models.resnet import BasicBlock

CHENYAOFO_CIFAR10: Statistics = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))


class PadShortcut(nn.Module):
    """Option A: every second pixel, and zeros on both sides of the channels; no parameters.

    >>> import torch
    >>> PadShortcut(4)(torch.ones(1, 2, 4, 4))[0, :, 0, 0]
    tensor([0., 1., 1., 0.])
    """

    def __init__(self, width_out: int) -> None:
        super().__init__()
        self.width_out = width_out

    def forward(self, x: Tensor) -> Tensor:
        """Halve the resolution and widen ``x`` to ``width_out`` channels."""
        before = (self.width_out - x.shape[1]) // 2
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, before, self.width_out - x.shape[1] - before))


class CifarBlock(BasicBlock):
    """The basic block, with option A around those that change the width unless there is a ``projection``."""

    def __init__(self, width_in: int, width_out: int, stride: int, projection: bool) -> None:
        super().__init__(width_in, width_out, stride)
        if width_in != width_out and not projection:
            self.downsample = PadShortcut(width_out)


class CifarResNet(nn.Module):
    """ResNet of ``depth = 6 n + 2`` layers; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> CifarResNet(8, 10, IMAGENET, projection=False)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, depth: int, num_classes: int, statistics: Statistics, *, projection: bool) -> None:
        super().__init__()
        blocks = (depth - 2) // 6
        self.input_norm = InputNorm(statistics)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks, 1, projection)
        self.layer2 = _stage(16, 32, blocks, 2, projection)
        self.layer3 = _stage(32, 64, blocks, 2, projection)
        self.classifier_name = "fc" if projection else "linear"
        self.add_module(self.classifier_name, nn.Linear(64, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        maps = F.relu(self.bn1(self.conv1(self.input_norm(images))))
        maps = self.layer3(self.layer2(self.layer1(maps)))
        logits: Tensor = self.get_submodule(self.classifier_name)(maps.mean(dim=(2, 3)))
        return logits


def _stage(width_in: int, width_out: int, blocks: int, stride: int, projection: bool) -> nn.Sequential:
    first = CifarBlock(width_in, width_out, stride, projection)
    return nn.Sequential(first, *(CifarBlock(width_out, width_out, 1, projection) for _ in range(blocks - 1)))


def option_a(depth: int) -> Callable[[int], CifarResNet]:
    """The builder of the network of ``depth`` layers with parameter-free shortcuts."""

    def build(num_classes: int = 10) -> CifarResNet:
        return CifarResNet(depth, num_classes, IMAGENET, projection=False)

    return build


def projected(depth: int) -> Callable[[int], CifarResNet]:
    """The builder of the network of ``depth`` layers with projection shortcuts."""

    def build(num_classes: int = 100) -> CifarResNet:
        statistics = CHENYAOFO_CIFAR10 if num_classes == 10 else CIFAR100
        return CifarResNet(depth, num_classes, statistics, projection=True)

    return build
