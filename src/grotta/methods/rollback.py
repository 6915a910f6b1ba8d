"""Undo a step that failed halfway."""

import operator
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from grotta.methods.state import Stateful, optimizer_tensors, own_tensors

# Methods that train whole networks are not copied at every step: they write to their weights last.
_LARGEST_SHARE = 0.25


class Rollback:
    """Keeps what a step may change, so that a step which fails can be undone.

    That is the adapter's own parameters and statistics, its optimizer, its generator and, image by image, its memory.
    Copies are made into tensors that are kept from step to step. Parameters of a size comparable to the model's, and
    their optimizer's state, are not copied.
    """

    def __init__(self) -> None:
        self._live: list[Tensor] = []
        self._kept: list[Tensor] = []
        self._copies_parameters: bool | None = None

    def mark(self, adapter: Stateful) -> None:
        """Remember the state that :meth:`undo` goes back to."""
        optimizer = [tensor for _, tensor in optimizer_tensors(adapter.optimizer)]
        own = [tensor for _, tensor in own_tensors(adapter)]
        parameters = [tensor for tensor in own if isinstance(tensor, nn.Parameter)]
        if self._copies_parameters is None:
            model = [*adapter.model.parameters(), *adapter.model.buffers()]
            self._copies_parameters = _size(parameters) <= max(_LARGEST_SHARE * _size(model), 2**20)
        buffers = [tensor for tensor in own if not isinstance(tensor, nn.Parameter)]
        small = [*buffers, *parameters, *optimizer] if self._copies_parameters else buffers
        if len(small) != len(self._live) or any(map(operator.is_not, small, self._live)):
            self._live, self._kept = small, [tensor.detach().clone() for tensor in small]
        elif small:
            torch._foreach_copy_(self._kept, self._live)
        self._had_state = bool(optimizer)
        self._drawn = adapter.generator.get_state()
        if adapter.memory is not None:
            adapter.memory.mark()

    def undo(self, adapter: Stateful) -> None:
        """Go back to the state that was marked."""
        if adapter.optimizer is not None:
            adapter.optimizer.zero_grad()
            if not self._had_state:
                adapter.optimizer.state.clear()
        if self._live:
            torch._foreach_copy_([tensor.detach() for tensor in self._live], self._kept)
        adapter.generator.set_state(self._drawn)
        if adapter.memory is not None:
            adapter.memory.roll_back()


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)
