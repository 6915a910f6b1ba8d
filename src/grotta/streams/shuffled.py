"""The shuffled stream that classical test-time adaptation assumes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from grotta.streams.generate import Labels, Order, generate, label_frequencies
from grotta.streams.stream import Stream


def iid(labels: Sequence[ArrayLike], num_classes: int, *, period: int = 100, seed: int = 0) -> Stream:
    """Each image of a domain exactly once, shuffled.

    Args:
        labels: one 1-D integer array per domain, the labels of its images.
        num_classes: C.
        period: the number of samples that one row of ``label_distributions`` counts; the order does not depend on it.
        seed: of this stream alone; the same seed gives the same stream.

    Returns:
        The stream; its ``label_distributions`` are the label frequencies of the periods.

    >>> iid([[0, 1, 1, 0]], num_classes=2).label_distributions
    array([[0.5, 0.5]])
    """

    def order(domain: Labels, generator: np.random.Generator) -> Order:
        indices = generator.permutation(len(domain)).astype(np.int64)
        return indices, label_frequencies(domain[indices], num_classes, period)

    return generate("iid", labels, num_classes, order, gamma=None, period=period, seed=seed)
