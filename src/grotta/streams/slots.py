"""The stream of RoTTA: each class is spread over a few slots."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from grotta.streams.dirichlet import log_dirichlet
from grotta.streams.generate import Labels, Order, earlier_occurrences, generate, label_frequencies
from grotta.streams.stream import Stream

_MAX_SLOTS = 100


def rotta(labels: Sequence[ArrayLike], num_classes: int, gamma: float, *, period: int = 100, seed: int = 0) -> Stream:
    """The stream of RoTTA: correlated labels, each image of a domain exactly once.

    A domain has S = min(C, 100) slots, one after another. Each class draws ``Dirichlet(gamma 1_S)`` over the slots
    and cuts its images, in the order of the data, at ``floor(cumsum * n)``. In a slot the classes come one after
    another in random order; they are not mixed.

    Args:
        labels: one 1-D integer array per domain, the labels of its images.
        num_classes: C.
        gamma: the concentration; the smaller, the fewer slots a class is in.
        period: the number of samples that one row of ``label_distributions`` counts; the order does not depend on it.
        seed: of this stream alone; the same seed gives the same stream.

    Returns:
        The stream; its ``label_distributions`` are the label frequencies of the periods.

    >>> stream = rotta([[0, 1, 0, 1, 0, 1]], num_classes=2, gamma=0.01)
    >>> sorted(stream.indices[0].tolist())
    [0, 1, 2, 3, 4, 5]
    """

    def order(domain: Labels, generator: np.random.Generator) -> Order:
        slots = min(num_classes, _MAX_SLOTS)
        shares = np.exp(log_dirichlet(gamma, (num_classes, slots), generator))
        cuts = np.floor(np.cumsum(shares, axis=1)[:, :-1] * np.bincount(domain, minlength=num_classes)[:, None])
        rank = earlier_occurrences(domain)
        slot = (cuts[domain] <= rank[:, None]).sum(axis=1)
        place = generator.permuted(np.tile(np.arange(num_classes), (slots, 1)), axis=1)
        indices = np.lexsort((rank, place[slot, domain], slot)).astype(np.int64)
        return indices, label_frequencies(domain[indices], num_classes, period)

    return generate("rotta", labels, num_classes, order, gamma=gamma, period=period, seed=seed)
