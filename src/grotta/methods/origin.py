"""The source's values of what a method trains, for methods that stay near them or go back to them."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from grotta.methods.teacher import ema_


class Origin:
    """Trained parameters beside the values that they started from.

    >>> weight = nn.Parameter(torch.ones(2))
    >>> origin = Origin([weight])
    >>> _ = weight.data.fill_(3.0)
    >>> origin.pull_(0.5)
    >>> weight.data
    tensor([2., 2.])
    >>> origin.restore_()
    >>> weight.data
    tensor([1., 1.])
    """

    def __init__(self, trained: Iterable[nn.Parameter]) -> None:
        self.trained: list[Tensor] = list(trained)
        self.values = [p.detach().clone() for p in self.trained]

    @torch.no_grad()
    def restore_(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Put the parameters back, and reset ``optimizer``."""
        torch._foreach_copy_(self.trained, self.values)
        if optimizer is not None:
            optimizer.state.clear()

    def pull_(self, rate: float) -> None:
        """parameters <- (1 - rate) parameters + rate values."""
        ema_(self.trained, self.values, rate)

    def offset(self) -> Tensor:
        """Parameters minus values as one vector, with the gradient of the parameters."""
        return torch.cat([(p - value).flatten() for p, value in zip(self.trained, self.values)])

    def mean_cosine(self) -> Tensor:
        """Mean over the tensors of the cosine between parameters and values, with the gradient of the parameters."""
        cosines = [torch.cosine_similarity(p, value, dim=0) for p, value in zip(self.trained, self.values)]
        return torch.stack(cosines).mean()
