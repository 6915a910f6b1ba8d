"""The category-balanced bank of GRoTTA: one short queue per class."""

from __future__ import annotations

import torch
from torch import Tensor

from grotta._check import check_whole
from grotta.memory.storage import (
    ImageStore,
    State,
    check_image_count,
    check_labels,
    check_sizes,
    check_state,
)


class CategoryBalancedBank:
    """A first-in-first-out queue of ceil(capacity / num_classes) images for each (pseudo-)class.

    However skewed the stream is, no class can push out another one, so a random draw from the bank is far closer
    to balanced than the stream. Class c owns `room` neighbouring slots of one tensor; its i-th image ever goes
    into slot i mod room. Inserting a batch and drawing one are single index operations; neither makes the host
    wait for a device, except draws of more images than the bank was last known to hold.

    >>> bank = CategoryBalancedBank(capacity=4, num_classes=2)
    >>> bank.add(torch.rand(5, 3, 8, 8), torch.tensor([0, 0, 0, 0, 1]))
    >>> bank.counts().tolist(), len(bank)
    ([2, 1], 3)
    >>> bank.sample(2, torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3, 8, 8])
    """

    def __init__(self, capacity: int, num_classes: int) -> None:
        check_sizes(capacity, num_classes)
        self.capacity = capacity
        self.num_classes = num_classes
        self.room = -(-capacity // num_classes)
        self._slots = self.room * num_classes
        # One slot more than the queues need: images that their own batch pushes out again are written there, unread. A
        # boolean mask instead would make the host wait for its size.
        self._store = ImageStore(self._slots + 1)
        self.clear()

    @torch.inference_mode(False)
    def clear(self) -> None:
        """Forget all images, their shape, data type and device."""
        self._store.clear()
        self._written = torch.zeros(self.num_classes, dtype=torch.int64)  # images ever added, by class
        self._surely_filled = 0

    def add(self, images: Tensor, labels: Tensor) -> None:
        """Queue `images` (B, ch, H, W), uint8 or float, under `labels` (B,), int64 on the same device."""
        self._store.check(images)
        check_labels(labels, images, self.num_classes)
        self._add(images, labels)

    @torch.inference_mode(False)
    def _add(self, images: Tensor, labels: Tensor) -> None:
        slots, written = _assign_slots(labels, self._written.to(labels.device), self.room)
        self._store.write(slots, images)
        self._written = written

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw `n` distinct images, (n, ch, H, W); all of them, in random order, if there are fewer.

        `generator` is a CPU generator, so that a seed draws the same images on every device. One call always
        consumes one permutation of the slots, however many are filled.
        """
        check_whole("n", n, at_least=1)
        if self._surely_filled < n:  # slots never empty again, so the count is asked for only until it suffices
            self._surely_filled = len(self)
        if self._surely_filled == 0:
            raise ValueError("cannot sample from an empty bank")
        keys = torch.randperm(self._slots, generator=generator, device="cpu")
        if self._written.device.type == "cuda":
            keys = keys.pin_memory()  # a copy from pageable memory would wait for the device
        keys = keys.to(self._written.device, non_blocking=True)
        keys = torch.where(self._filled().flatten(), keys, -1)
        return self._store.read(keys.topk(min(n, self._surely_filled)).indices)

    def __len__(self) -> int:
        """Count the images; on an accelerator this waits for the device, `counts()` does not."""
        return int(self.counts().sum())

    def counts(self) -> Tensor:
        """Count the images of each class, (num_classes,) int64."""
        return self._written.clamp(max=self.room)

    def items(self, label: int) -> Tensor:
        """Copy the images of one class out, oldest first, (counts()[label], ch, H, W)."""
        check_whole("label", label, at_least=0, below=self.num_classes)
        if self._store.device is None:
            raise ValueError("an empty bank has no items, nor a shape for them yet")
        written = int(self._written[label])
        ages = torch.arange(max(written - self.room, 0), written, device=self._store.device)
        return self._store.read(label * self.room + ages % self.room)

    @property
    def nbytes(self) -> int:
        """Bytes reserved for images and counters."""
        return self._store.nbytes + self._written.nbytes

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """(ch, H, W) of the images, None before the first."""
        return self._store.image_shape

    def mark(self) -> None:
        """Remember the present contents, for :meth:`roll_back`."""
        self._store.mark()
        self._marked = (self._written, self._surely_filled)

    def roll_back(self) -> None:
        """Go back to the contents that were marked."""
        self._store.roll_back()
        self._written, self._surely_filled = self._marked

    def state_dict(self) -> dict[str, Tensor]:
        """Copy everything that the next calls depend on; only filled slots are in it."""
        return {
            "capacity": torch.tensor(self.capacity, device="cpu"),
            "num_classes": torch.tensor(self.num_classes, device="cpu"),
            "written": self._written.clone(),
            **self._store.state(self._filled_slots()),
        }

    @torch.inference_mode(False)
    def load_state_dict(self, state: State) -> None:
        """Become the bank that gave `state`, on its device; a state that does not fit changes nothing."""
        check_state(state, {"written": (self.num_classes,)}, capacity=self.capacity, num_classes=self.num_classes)
        check_image_count(state, int(state["written"].clamp(max=self.room).sum()))
        self.clear()
        self._written = state["written"].clone()
        self._store.restore(state, self._filled_slots())

    def _filled(self) -> Tensor:
        """Mask of the slots in use, (num_classes, room)."""
        return torch.arange(self.room, device=self._written.device) < self._written[:, None]

    def _filled_slots(self) -> Tensor:
        return self._filled().flatten().nonzero().flatten()


def _assign_slots(labels: Tensor, written: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """Slots of a batch with `labels` (B,) after `written` (C,) images of each class, (B,), and the new `written`.

    The i-th image ever of class c goes into slot c room + i mod room, unless its own batch has `room` later ones of its
    class: then into the last slot, C room. So no other slot occurs twice.

    >>> _assign_slots(torch.tensor([2, 0, 2, 2]), written=torch.tensor([0, 0, 1]), room=2)
    (tensor([6, 0, 4, 5]), tensor([1, 0, 4]))
    """
    after = written.scatter_add(0, labels, torch.ones_like(labels))
    ordered, order = labels.sort(stable=True)
    # At place j of the sorted batch, i = written[c] + j - (images of classes before c in the batch).
    offset = after - (after - written).cumsum(0)
    number = torch.arange(len(labels), device=labels.device) + offset[ordered]
    stays = number >= after[ordered] - room
    slots = torch.where(stays, ordered * room + number % room, len(written) * room)
    return torch.empty_like(slots).scatter_(0, order, slots), after
