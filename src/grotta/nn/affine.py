"""Normalisation layers without batch statistics, and their affine parameters.

Batch normalisation is replaced (``convert``); every other kind stays as it is, and only its scale and shift can adapt.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from grotta.nn.norm_base import AdaptiveNorm

KNOWN = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, _InstanceNorm)
AFFINE = ("weight", "bias")


def affine_layers(network: nn.Module) -> list[nn.Module]:
    """The layers of ``network`` that normalise without batch statistics and have a scale to train, each once.

    These are torch's (LayerNorm, GroupNorm, RMSNorm, InstanceNorm), their subclasses, and any other layer that is
    called a norm and has a ``weight`` with one value per channel, as in many published models.

    >>> [type(layer).__name__ for layer in affine_layers(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)))]
    ['LayerNorm']
    """
    return [module for module in network.modules() if _is_affine_norm(module)]


def own_affine(network: nn.Module) -> list[nn.Module]:
    """Give the :func:`affine_layers` copies of their affine parameters, not trained yet; returns the layers."""
    layers = affine_layers(network)
    own: dict[int, nn.Parameter] = {}
    for layer in layers:
        for name in AFFINE:
            if (shared := layer._parameters.get(name)) is not None:
                if id(shared) not in own:
                    own[id(shared)] = nn.Parameter(shared.detach().clone(), requires_grad=False)
                layer._parameters[name] = own[id(shared)]
        if not isinstance(layer, nn.LayerNorm | nn.RMSNorm | _InstanceNorm) and not _is_guarded(layer):
            layer.register_forward_pre_hook(_with_input_gradient)
    return layers


def _with_input_gradient(layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Ask for the gradient of the input of a group normalisation as well, even if it is not needed.

    In torch 2.13 the backward on a CPU in channels_last crashes the process if the gradient of the input is not asked
    for, which is the case for the first layer when only affine parameters are trained.
    """
    if not (args and isinstance(x := args[0], Tensor) and torch.is_grad_enabled()):
        return None
    if x.requires_grad or x.device.type != "cpu" or not x.is_floating_point():
        return None
    return (x.detach().requires_grad_(), *args[1:])


def _is_guarded(layer: nn.Module) -> bool:
    return _with_input_gradient in layer._forward_pre_hooks.values()


def _is_affine_norm(module: nn.Module) -> bool:
    if isinstance(module, AdaptiveNorm | _BatchNorm):
        return False
    weight = module._parameters.get("weight")
    if weight is None or not weight.is_floating_point():
        return False
    return isinstance(module, KNOWN) or ("Norm" in type(module).__name__ and weight.squeeze().ndim <= 1)
