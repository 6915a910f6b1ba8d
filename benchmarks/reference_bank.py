"""The category-balanced bank as a queue of images a class: what `grotta.memory.CategoryBalancedBank` must equal."""

from __future__ import annotations

import math
import random
from collections import deque

import torch
from torch import Tensor


class ReferenceBank:
    """One queue a class; images go in and come out one at a time."""

    def __init__(self, capacity: int, num_classes: int) -> None:
        room = math.ceil(capacity / num_classes)
        self.queues: list[deque[Tensor]] = [deque(maxlen=room) for _ in range(num_classes)]

    def add(self, images: Tensor, labels: Tensor) -> None:
        for image, label in zip(images, labels):
            self.queues[int(label)].append(image.clone())

    def sample(self, n: int, generator: random.Random) -> Tensor:
        everything = [image for queue in self.queues for image in queue]
        return torch.stack(generator.sample(everything, min(n, len(everything))))
