"""NaN and infinity: found at once where that is free, and soon after where it would make the host wait."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class FiniteWatch:
    """Raises a ``FloatingPointError`` when what it is shown holds NaN or infinity.

    On a CPU that is at once. On a CUDA device the result is fetched without waiting for it, and reported by the first
    call that finds it ready.

    >>> FiniteWatch().check(torch.tensor([1.0, float("nan")]), "the predictions are not finite")
    Traceback (most recent call last):
    FloatingPointError: the predictions are not finite
    """

    def __init__(self) -> None:
        self._on_its_way: deque[tuple[Any, Tensor, str]] = deque()

    def check(self, values: Tensor, message: str) -> None:
        """Show it ``values`` of any shape; ``message`` is for the error."""
        finite = torch.isfinite(values.detach()).all()
        if finite.device.type == "cuda":
            fetched = torch.empty((), dtype=torch.bool, pin_memory=True)
            fetched.copy_(finite, non_blocking=True)
            event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._on_its_way.append((event, fetched, message))
        elif finite.device.type == "cpu" and not bool(finite):
            raise FloatingPointError(message)

    def report(self) -> None:
        """Raise if something shown earlier has turned out not to be finite by now."""
        while self._on_its_way and self._on_its_way[0][0].query():
            _, finite, message = self._on_its_way.popleft()
            if not bool(finite):
                self._on_its_way.clear()
                raise FloatingPointError(f"{message} (found in an earlier call)")


def size_of(parameters: Sequence[Tensor]) -> Tensor:
    """The sum of the norms of ``parameters``: not finite if one of them is not, or is about to overflow.

    >>> size_of([torch.tensor([3.0, 4.0]), torch.tensor([1.0])])
    tensor(6.)
    """
    return torch.stack(torch._foreach_norm(list(parameters))).sum()
