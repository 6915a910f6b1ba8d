"""MobileNetV2 (Sandler et al., 2018) with torchvision's parameter names and input statistics."""

from __future__ import annotations

from torch import Tensor, nn

from grotta.models.input_norm import IMAGENET, InputNorm

# (expansion, width, repeats, stride of the first block), the paper's table 2
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class ConvNormReLU6(nn.Sequential):
    """Convolution, batch norm, ReLU6."""

    def __init__(self, width_in: int, width_out: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(
            nn.Conv2d(width_in, width_out, size, stride, padding=size // 2, groups=groups, bias=False),
            nn.BatchNorm2d(width_out),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    """1x1 expansion, depth-wise 3x3, linear 1x1; with a skip connection where the shapes agree."""

    def __init__(self, width_in: int, width_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = width_in * expansion
        layers: list[nn.Module] = [ConvNormReLU6(width_in, inner, 1)] if expansion != 1 else []
        layers += [
            ConvNormReLU6(inner, inner, 3, stride, groups=inner),
            nn.Conv2d(inner, width_out, 1, bias=False),
            nn.BatchNorm2d(width_out),
        ]
        self.conv = nn.Sequential(*layers)
        self.adds_input = stride == 1 and width_in == width_out

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x)
        return x + out if self.adds_input else out


class MobileNetV2(nn.Module):
    """MobileNetV2 of width 1; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    The published network drops features at random before its last layer while it is trained. Here nothing is
    dropped: all randomness is drawn from explicit seeds. The layer keeps its published name, ``classifier.1``.

    >>> import torch
    >>> with torch.device("meta"):
    ...     MobileNetV2(num_classes=7)(torch.rand(1, 3, 64, 64)).shape
    torch.Size([1, 7])
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.input_norm = InputNorm(IMAGENET)
        layers: list[nn.Module] = [ConvNormReLU6(3, 32, 3, stride=2)]
        width = 32
        for expansion, stage_width, repeats, first_stride in _STAGES:
            for index in range(repeats):
                layers.append(InvertedResidual(width, stage_width, first_stride if index == 0 else 1, expansion))
                width = stage_width
        layers.append(ConvNormReLU6(width, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, num_classes))

    def forward(self, images: Tensor) -> Tensor:
        maps = self.features(self.input_norm(images))
        logits: Tensor = self.classifier(maps.mean(dim=(2, 3)))
        return logits


def mobilenet_v2(num_classes: int = 1000) -> MobileNetV2:
    """MobileNetV2, 3.5 million parameters."""
    return MobileNetV2(num_classes)
