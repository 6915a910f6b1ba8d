"""Compact residual networks for 32x32 images: the bundled source models.

They are wide where the image is already small: on a CPU, a few channels at full resolution cost far more time
than their arithmetic suggests, so the first stages are thin and the resolution drops early.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from grotta.models.input_norm import CIFAR10, FASHION, InputNorm, Statistics


class ConvNormReLU(nn.Sequential):
    """3x3 convolution, batch norm, ReLU."""

    def __init__(self, width_in: int, width_out: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(width_out),
            nn.ReLU(inplace=True),
        )


class Residual(nn.Module):
    """``x + f(x)`` with two convolutions in ``f``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = ConvNormReLU(width, width)
        self.conv2 = ConvNormReLU(width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.conv2(self.conv1(x))
        return out


class CompactResNet(nn.Module):
    """Stem, stages of one strided convolution and (optionally) one residual block, global max pool, linear.

    Args:
        stem: width of the first convolution; ``stem_stride`` its stride.
        stages: ``(width, residual)`` per stage; each halves the resolution.
        num_classes: number of outputs.
        statistics: mean and deviation of the input.

    Shapes: (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> CompactResNet(8, 2, [(16, True)], num_classes=10, statistics=FASHION)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        stem: int,
        stem_stride: int,
        stages: Sequence[tuple[int, bool]],
        num_classes: int,
        statistics: Statistics,
    ) -> None:
        super().__init__()
        self.input_norm = InputNorm(statistics)
        layers: list[nn.Module] = [ConvNormReLU(3, stem, stem_stride)]
        width = stem
        for stage_width, residual in stages:
            layers.append(ConvNormReLU(width, stage_width, stride=2))
            if residual:
                layers.append(Residual(stage_width))
            width = stage_width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(width, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.features(self.input_norm(images))
        logits: Tensor = self.classifier(maps.amax(dim=(2, 3)))
        return logits


def fashion_resnet8(num_classes: int = 10) -> CompactResNet:
    """Eight layers for Fashion-MNIST at 32x32: small enough to adapt on one core."""
    return CompactResNet(16, 2, [(32, True), (64, True)], num_classes, FASHION)


def cifar10_resnet(num_classes: int = 10) -> CompactResNet:
    """Nine layers for CIFAR-10, 0.7 million parameters."""
    return CompactResNet(32, 1, [(64, True), (128, True), (192, False)], num_classes, CIFAR10)
