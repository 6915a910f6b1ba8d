"""NOTE's memory: prediction-balanced reservoir sampling."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grotta.memory.host_guided import HostGuidedMemory
from grotta.memory.storage import State, check_label_range, check_labels


class PBRS(HostGuidedMemory):
    """Keep `capacity` images: balanced over classes, and within a class a fair sample of everything seen of it.

    With n_c the samples of class c ever seen, the new one included, and m_c those in memory: a sample is appended while
    the memory is not full. Then one whose class is not among the largest classes replaces a random item of a
    random one of those; any other replaces a random item of its own class with probability m_c / n_c, or is dropped.

    Adding a batch copies its labels to the host once.

    >>> memory = PBRS(capacity=2, num_classes=2)
    >>> memory.add(torch.rand(5, 3, 8, 8), torch.tensor([0, 0, 0, 0, 1]), torch.Generator().manual_seed(0))
    >>> memory.contents().shape, memory.counts().tolist(), memory.seen().tolist()
    (torch.Size([2, 3, 8, 8]), [1, 1], [4, 1])
    """

    def clear(self) -> None:
        super().clear()
        self._seen: NDArray[np.int64] = np.zeros(self.num_classes, dtype=np.int64)

    def add(self, images: Tensor, labels: Tensor, generator: torch.Generator) -> None:
        """Offer `images` (B, ch, H, W) in their order, with `labels` (B,) int64.

        The CPU `generator` gives two uniform numbers per sample, used or not: the first picks the class or decides
        whether to replace, the second picks the item, in the order of arrival.
        """
        self._store.check(images)
        check_labels(labels, images, self.num_classes)
        host_labels: list[int] = labels.tolist()
        check_label_range(min(host_labels), max(host_labels), self.num_classes)
        uniforms = torch.rand(len(labels), 2, generator=generator, dtype=torch.float64, device="cpu").tolist()
        origin: dict[int, int] = {}
        for i, (label, (first, second)) in enumerate(zip(host_labels, uniforms, strict=True)):
            self._seen[label] += 1
            slot = self._slot_for(label, first, second)
            if slot is not None:
                self._place(label, slot)
                origin[slot] = i
            self._time += 1
        self._write(images, origin)

    def _slot_for(self, label: int, first: float, second: float) -> int | None:
        """Decide where a sample goes; None if it is dropped."""
        if self._size < self.capacity:
            return self._unused_slot()
        largest = self._largest_classes()
        if label not in largest:
            label = largest[int(first * len(largest))]
        elif first >= self._counts[label] / self._seen[label]:
            return None
        queue = self._queues[label]
        return self._evict(queue[int(second * len(queue))])

    def contents(self) -> Tensor:
        """Copy all images out, (n, ch, H, W), by class and then arrival."""
        return self._read()

    def seen(self) -> Tensor:
        """Count the samples of each class that were ever offered, (num_classes,) int64, on the host."""
        return torch.from_numpy(self._seen.copy())

    def state_dict(self) -> dict[str, Tensor]:
        return {**super().state_dict(), "seen": self.seen()}

    def load_state_dict(self, state: State) -> None:
        self._load(state, seen=(self.num_classes,))
        self._seen[:] = state["seen"].cpu().numpy()
