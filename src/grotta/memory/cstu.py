"""RoTTA's memory: category-balanced sampling with timeliness and uncertainty."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from grotta._check import check_at_least, check_whole
from grotta.memory.host_guided import HostGuidedMemory
from grotta.memory.storage import State, check_label_range, check_labels


class CSTU(HostGuidedMemory):
    """Keep `capacity` images, balanced over classes, preferring recent and certain ones.

    An item's score is H = lambda_t / (1 + exp(-age / N)) + lambda_u U / ln C, and each class has room for N / C items
    (a real number). A sample of a class with room is appended while the memory is not full; otherwise it replaces
    the item with the largest H among the largest classes; a sample of a class without room replaces
    the item with the largest H of its own class. Either happens only if that H is strictly larger than the new sample's
    at age 0; otherwise the sample is dropped. Of equal H the last one goes, by class and then arrival. All ages,
    the new sample's included, grow by 1 after each sample offered.

    Adding a batch copies its labels and uncertainties to the host once.

    >>> memory = CSTU(capacity=2, num_classes=2)
    >>> memory.add(torch.rand(3, 3, 8, 8), torch.tensor([0, 1, 1]), torch.tensor([0.1, 0.6, 0.2]))
    >>> images, ages = memory.contents()
    >>> images.shape, ages.tolist(), memory.counts().tolist()
    (torch.Size([2, 3, 8, 8]), [3, 1], [1, 1])
    """

    def __init__(self, capacity: int, num_classes: int, lambda_t: float = 1.0, lambda_u: float = 1.0) -> None:
        check_whole("num_classes", num_classes, at_least=2)  # the score divides by its logarithm
        super().__init__(capacity, num_classes)
        self.lambda_t = check_at_least("lambda_t", lambda_t, 0)
        self.lambda_u = check_at_least("lambda_u", lambda_u, 0)
        self._log_classes = math.log(num_classes)

    def clear(self) -> None:
        super().clear()
        self._uncertainty = [0.0] * self.capacity  # of the item of each slot

    def add(self, images: Tensor, labels: Tensor, uncertainties: Tensor) -> None:
        """Offer `images` (B, ch, H, W) in their order, with `labels` (B,) int64 and `uncertainties` (B,) float."""
        self._store.check(images)
        check_labels(labels, images, self.num_classes)
        expected = (tuple(labels.shape), labels.device)
        if (tuple(uncertainties.shape), uncertainties.device) != expected or not uncertainties.is_floating_point():
            raise ValueError(f"uncertainties must be floats, one per image and on its device, got {uncertainties!r}")
        host_labels, host_uncertainties = torch.stack((labels.double(), uncertainties.detach().double())).tolist()
        check_label_range(int(min(host_labels)), int(max(host_labels)), self.num_classes)
        if not all(map(math.isfinite, host_uncertainties)):
            raise ValueError("uncertainties must be finite, got NaN or infinity")
        origin: dict[int, int] = {}
        for i, (label, uncertainty) in enumerate(zip(map(int, host_labels), host_uncertainties, strict=True)):
            slot = self._slot_for(label, uncertainty)
            if slot is not None:
                self._place(label, slot)
                self._uncertainty[slot] = uncertainty
                origin[slot] = i
            self._time += 1
        self._write(images, origin)

    def _slot_for(self, label: int, uncertainty: float) -> int | None:
        """Decide where a sample goes; None if it is dropped."""
        if self._counts[label] >= self.capacity / self.num_classes:
            rivals = list(self._queues[label])
        elif self._size < self.capacity:
            return self._unused_slot()
        else:
            rivals = [slot for largest in self._largest_classes() for slot in self._queues[largest]]
        scores = self._scores(rivals)
        highest = max(scores)
        if highest <= self.lambda_t / 2 + self.lambda_u * uncertainty / self._log_classes:
            return None
        last = len(scores) - 1 - scores[::-1].index(highest)
        return self._evict(rivals[last])

    def _scores(self, slots: list[int]) -> list[float]:
        """H of the items in `slots`, the inner loop of this memory."""
        born, uncertainty, exp = self._born, self._uncertainty, math.exp
        time, capacity, log_classes = self._time, self.capacity, self._log_classes
        lambda_t, lambda_u = self.lambda_t, self.lambda_u
        return [
            lambda_t / (1 + exp((born[slot] - time) / capacity)) + lambda_u * uncertainty[slot] / log_classes
            for slot in slots
        ]

    def contents(self) -> tuple[Tensor, Tensor]:
        """Copy all images out, (n, ch, H, W), by class and then arrival, with their ages (n,) int64, on one device."""
        images = self._read()
        return images, self._ages().to(images.device)

    def state_dict(self) -> dict[str, Tensor]:
        uncertainties = [self._uncertainty[slot] for slot in self._ordered()]
        return {**super().state_dict(), "uncertainties": torch.tensor(uncertainties, dtype=torch.float64, device="cpu")}

    def load_state_dict(self, state: State) -> None:
        self._load(state, uncertainties=state["labels"].shape if "labels" in state else (0,))
        self._uncertainty[: self._size] = state["uncertainties"].tolist()
