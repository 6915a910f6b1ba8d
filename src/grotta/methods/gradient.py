"""Gradients as values, for methods that do more with them than a step."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def gradients(loss: Tensor, parameters: Iterable[nn.Parameter]) -> tuple[Tensor, ...]:
    """The gradient of ``loss`` for each of the parameters, whose ``.grad`` is empty before and after.

    A whole backward pass: ``torch.autograd.grad`` leaves out what is not asked for, such as the gradient of the input
    of a group normalisation, without which torch 2.13 crashes on a CPU in channels_last (``grotta.nn.affine``).

    >>> weight = nn.Parameter(torch.tensor(3.0))
    >>> gradients(weight * weight, [weight]), weight.grad
    ((tensor(6.),), None)
    """
    parameters = list(parameters)
    torch.autograd.backward(loss)
    found = tuple(torch.zeros_like(p) if p.grad is None else p.grad for p in parameters)
    for parameter in parameters:
        parameter.grad = None
    return found
