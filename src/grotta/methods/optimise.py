"""Gradient descent as the methods do it: one optimizer, one step per loss."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from grotta._check import check_one_of


def make_optimizer(
    kind: str, parameters: Iterable[nn.Parameter], lr: float, *, nesterov: bool = True
) -> torch.optim.Optimizer:
    """``"adam"`` (betas 0.9 and 0.999) or ``"sgd"`` (momentum 0.9, Nesterov's or plain), both without weight decay.

    >>> type(make_optimizer("adam", [nn.Parameter(torch.zeros(1))], lr=1e-3)).__name__
    'Adam'
    """
    check_one_of("optimizer", kind, ("adam", "sgd"))
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.999), foreach=True)
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, nesterov=nesterov, foreach=True)


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    """One step of ``optimizer`` down the gradient of ``loss``, which comes back without its graph.

    >>> x = nn.Parameter(torch.tensor(3.0))
    >>> descend(torch.optim.SGD([x], lr=0.1), x**2)
    tensor(9.)
    >>> x.item()
    2.4000000953674316
    """
    if loss.device.type == "cpu" and not bool(torch.isfinite(loss.detach())):
        raise FloatingPointError("the loss is NaN or infinite: the method has diverged; nothing was learned")
    torch.autograd.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()
