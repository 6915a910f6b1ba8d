"""What the two memories with a sequential rule share: decisions on the host, and one write of images per batch."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grotta.memory.storage import ImageStore, State, check_label_range, check_sizes, check_state


class HostGuidedMemory:
    """Slots for images on a device, with the few numbers that a sequential rule needs about each on the host.

    Such a rule decides about one sample after another, and each decision depends on the one before. So it runs on plain
    numbers, after the batch's numbers were copied from the device once; images that survive their own batch are then
    written by one index operation. Items are ordered by class and, inside a class, by arrival.
    """

    def __init__(self, capacity: int, num_classes: int) -> None:
        check_sizes(capacity, num_classes)
        self.capacity = capacity
        self.num_classes = num_classes
        self._store = ImageStore(capacity)
        self.clear()

    def clear(self) -> None:
        self._store.clear()
        self._queues: list[list[int]] = [[] for _ in range(self.num_classes)]  # slots of each class by arrival
        self._counts: NDArray[np.int64] = np.zeros(self.num_classes, dtype=np.int64)  # lengths of the queues
        self._labels = [0] * self.capacity  # of the item of each slot
        self._born = [0] * self.capacity  # the time when it arrived
        self._time = 0  # samples offered so far
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def counts(self) -> Tensor:
        """Count the images of each class, (num_classes,) int64, on the host."""
        return torch.from_numpy(self._counts.copy())

    @property
    def nbytes(self) -> int:
        return self._store.nbytes

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        return self._store.image_shape

    def mark(self) -> None:
        self._store.mark()
        own = {name: value for name, value in vars(self).items() if name not in ("_store", "_marked")}
        self._marked = copy.deepcopy(own)

    def roll_back(self) -> None:
        self._store.roll_back()
        vars(self).update(copy.deepcopy(self._marked))

    def state_dict(self) -> dict[str, Tensor]:
        """Copy everything that the next calls depend on, items by class and then arrival."""
        slots = self._ordered()
        return {
            "capacity": torch.tensor(self.capacity, device="cpu"),
            "num_classes": torch.tensor(self.num_classes, device="cpu"),
            "labels": torch.tensor([self._labels[slot] for slot in slots], dtype=torch.int64, device="cpu"),
            "ages": self._ages(),
            **self._store.state(torch.tensor(slots, dtype=torch.int64, device=self._store.device)),
        }

    def _load(self, state: State, **shapes: tuple[int, ...]) -> None:
        """Take over a state whose own tensors have `shapes`, items in slots 0, 1, ...; first check that it fits."""
        size = len(state["images"]) if "images" in state else 0
        shapes |= {"labels": (size,), "ages": (size,)}
        check_state(state, shapes, capacity=self.capacity, num_classes=self.num_classes)
        if size > self.capacity:
            raise ValueError(f"state holds {size} images, more than its capacity {self.capacity}")
        if size > 0:
            check_label_range(int(state["labels"].min()), int(state["labels"].max()), self.num_classes)
        self.clear()
        ages = state["ages"].tolist()
        latest = max(ages, default=0)
        for slot, (label, age) in enumerate(zip(state["labels"].tolist(), ages, strict=True)):
            self._time = latest - age
            self._place(label, slot)
        self._time, self._size = latest, size
        self._store.restore(state, torch.arange(size, device=state["images"].device))

    def _ordered(self) -> list[int]:
        """Slots in use, by class and then by arrival."""
        return [slot for queue in self._queues for slot in queue]

    def _ages(self) -> Tensor:
        return torch.tensor(
            [self._time - self._born[slot] for slot in self._ordered()], dtype=torch.int64, device="cpu"
        )

    def _largest_classes(self) -> list[int]:
        """The classes with the most items, in ascending order."""
        return np.flatnonzero(self._counts == self._counts.max()).tolist()

    def _unused_slot(self) -> int:
        self._size += 1
        return self._size - 1

    def _evict(self, slot: int) -> int:
        """Remove the item of `slot` from its class and return the slot, now free."""
        label = self._labels[slot]
        self._queues[label].remove(slot)
        self._counts[label] -= 1
        return slot

    def _place(self, label: int, slot: int) -> None:
        """Put the sample that is offered now into a free slot."""
        self._queues[label].append(slot)
        self._counts[label] += 1
        self._labels[slot] = label
        self._born[slot] = self._time

    def _write(self, images: Tensor, origin: dict[int, int]) -> None:
        """Write image origin[slot] of the batch into each slot."""
        if origin:
            slots, chosen = torch.tensor([list(origin.keys()), list(origin.values())], device=images.device)
            self._store.write(slots, images.index_select(0, chosen))

    def _read(self) -> Tensor:
        if self._store.device is None:
            raise ValueError("the memory is empty: it has no contents, nor a shape for them yet")
        return self._store.read(torch.tensor(self._ordered(), dtype=torch.int64, device=self._store.device))
