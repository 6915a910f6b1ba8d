"""What adapts by gradient, and a teacher that follows it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grotta.nn import norm_layers, own_affine
from grotta.nn.affine import AFFINE


class NothingToTrainError(ValueError):
    """The network has no parameters of the kind that a method trains: it is left as it is."""


def trained_affine(network: nn.Module) -> dict[str, nn.Parameter]:
    """Let the affine parameters of all norm layers be trained, and nothing else; returns them by name.

    These are the converted batch normalisations, and layers of other kinds (LayerNorm, GroupNorm, RMSNorm, ...), which
    get their own copies. A network without any raises :class:`NothingToTrainError`, and its adapter then works without
    training.
    """
    network.requires_grad_(False)
    for layer in [*norm_layers(network), *own_affine(network)]:
        for name in AFFINE:
            if (parameter := layer._parameters.get(name)) is not None:
                parameter.requires_grad_(True)
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    if not trained:
        raise NothingToTrainError("no norm layer of the model has affine parameters: there is nothing to train")
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
