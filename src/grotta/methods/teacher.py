"""A teacher that follows its student."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grotta.nn import norm_layers


def trained_affine(network: nn.Module) -> dict[str, nn.Parameter]:
    """Let the affine parameters of the converted norm layers be trained, and nothing else; returns them by name."""
    network.requires_grad_(False)
    for layer in norm_layers(network):
        for parameter in layer.parameters(recurse=False):
            parameter.requires_grad_(True)
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError("no norm layer of the model has affine parameters: there is nothing to train")
    return trained


@torch.no_grad()
def ema_(teacher: Sequence[Tensor], student: Sequence[Tensor], nu: float) -> None:
    """teacher <- (1 - nu) teacher + nu student, all tensors in one kernel.

    >>> t = [torch.zeros(2)]
    >>> ema_(t, [torch.ones(2)], 0.25)
    >>> t
    [tensor([0.2500, 0.2500])]
    """
    torch._foreach_lerp_(list(teacher), list(student), nu)
