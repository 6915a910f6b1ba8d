"""Initial weights from an explicit generator."""

from __future__ import annotations

import torch
from torch import nn

from grotta.models.input_norm import InputNorm


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw every convolution (He, fan out) and linear layer (He uniform, zero bias) again, in place.

    Normalisation layers start as the identity. Every tensor of the architectures of this package is written, so
    a network built on the meta device and moved with ``to_empty`` is complete afterwards.

    >>> a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    >>> for layer in (a, b):
    ...     initialise(layer, torch.Generator().manual_seed(0))
    >>> torch.equal(a.weight, b.weight)
    True
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu", generator=generator)
        elif isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, a=5**0.5, generator=generator)
        elif isinstance(layer, nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm | InputNorm):
            layer.reset_parameters()
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
