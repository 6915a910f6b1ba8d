"""Updates that come every so many samples, whatever the batches are."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from grotta._check import check_in_unit_interval, check_positive, check_whole
from grotta.memory import CSTU, PBRS
from grotta.methods.base import Adapter, Learned


class SampleCadence(Adapter):
    """A method that remembers every sample and adapts after every ``update_every``-th one, even within a batch."""

    optimizer: torch.optim.Optimizer
    memory: CSTU | PBRS
    seen: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        alpha: float,
        capacity: int = 64,
        update_every: int = 64,
        lr: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.alpha = check_in_unit_interval("alpha", alpha)
        self.capacity = check_whole("capacity", capacity, at_least=1)
        self.update_every = check_whole("update_every", update_every, at_least=1)
        self.lr = check_positive("lr", lr)

    def build(self) -> None:
        """No samples seen so far."""
        self.register_buffer("seen", torch.tensor(0, device="cpu"))  # on the host, where it decides

    @abstractmethod
    def _update(self) -> Tensor:
        """One step on the whole memory; returns the loss."""

    def _learn_in_pieces(self, labels: Tensor, remember: Callable[[slice], None]) -> Learned:
        """Remember a batch with ``labels`` (B,) piece by piece, and update wherever the count of samples says so."""
        losses = []
        for piece, due in pieces(int(self.seen), len(labels), self.update_every):
            remember(piece)
            if due:
                losses.append(self._update())
        self.seen += len(labels)
        loss = torch.stack(losses).mean() if losses else None
        return Learned(adapted=bool(losses), loss=loss, bank_size=len(self.memory))


def pieces(seen: int, size: int, every: int) -> Iterator[tuple[slice, bool]]:
    """Cut a batch of ``size`` samples, ``seen`` of them before it, wherever their count is a multiple of ``every``.

    Yields the pieces in order, each with whether an update is due after it.

    >>> list(pieces(seen=60, size=10, every=8))
    [(slice(0, 4, None), True), (slice(4, 10, None), False)]
    """
    start = 0
    while start < size:
        stop = min(start + every - (seen + start) % every, size)
        yield slice(start, stop), (seen + stop) % every == 0
        start = stop
