"""Streams that draw a new label distribution for each period: ptta, and exhaustive without replacement."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grotta.streams.dirichlet import log_dirichlet, log_normalised
from grotta.streams.generate import (
    Labels,
    Order,
    earlier_occurrences,
    generate,
    label_frequencies,
    period_sizes,
    positions_by_class,
)
from grotta.streams.stream import Stream


def ptta(labels: Sequence[ArrayLike], num_classes: int, gamma: float, *, period: int = 100, seed: int = 0) -> Stream:
    """The stream of practical test-time adaptation: a different label distribution in each period.

    Each domain of n images gives n samples in round(n / period) periods, equal to within one sample. Period i draws
    ``p_i ~ Dirichlet(gamma 1_C)`` over the classes and its labels independently from p_i; the image of a label comes
    from a shuffled deck of the domain's images of that class, reshuffled when it is empty. So an image may come more
    than once, or never. A class without images in a domain has p_i = 0 there, and p_i is drawn over the others.

    Args:
        labels: one 1-D integer array per domain, the labels of its images.
        num_classes: C.
        gamma: the concentration; the smaller, the more imbalanced and changing.
        period: the number of samples with the same label distribution.
        seed: of this stream alone; the same seed gives the same stream.

    Returns:
        The stream; its ``label_distributions`` are the p_i.

    >>> from grotta.functional import imbalance_degree
    >>> labels = [np.arange(1000) % 10] * 2
    >>> [round(imbalance_degree(ptta(labels, 10, gamma).label_distributions), 2) for gamma in (100, 0.001)]
    [0.03, 0.95]
    """

    def order(domain: Labels, generator: np.random.Generator) -> Order:
        sizes = period_sizes(len(domain), period)
        p = np.exp(_log_distributions(domain, num_classes, gamma, len(sizes), generator))
        drawn = [generator.choice(num_classes, size, p=row) for row, size in zip(p, sizes)]
        return _deal(np.concatenate(drawn), domain, num_classes, generator), p

    return generate("ptta", labels, num_classes, order, gamma=gamma, period=period, seed=seed)


def exhaustive(
    labels: Sequence[ArrayLike], num_classes: int, gamma: float, *, period: int = 100, seed: int = 0
) -> Stream:
    """The ptta stream without replacement: each image of a domain comes exactly once.

    Periods and p_i are those of ``ptta``. The labels of a period are drawn one after another from p_i restricted to
    the classes that still have images in the domain, and normalised; the image is a random one of those left. Towards
    the end of a domain few classes are left, so its periods follow p_i less and less.

    Args:
        labels: one 1-D integer array per domain, the labels of its images.
        num_classes: C.
        gamma: the concentration; the smaller, the more imbalanced and changing.
        period: the number of samples that share a p_i.
        seed: of this stream alone; the same seed gives the same stream.

    Returns:
        The stream; its ``label_distributions`` are the label frequencies of the periods.

    >>> stream = exhaustive([[0, 0, 1, 2, 2]], num_classes=3, gamma=0.1)
    >>> sorted(stream.indices[0].tolist())
    [0, 1, 2, 3, 4]
    """

    def order(domain: Labels, generator: np.random.Generator) -> Order:
        sizes = period_sizes(len(domain), period)
        log_p = _log_distributions(domain, num_classes, gamma, len(sizes), generator)
        left = np.bincount(domain, minlength=num_classes)
        drawn = [_draw_from_left(left, row, size, generator) for row, size in zip(log_p, sizes)]
        sequence = np.concatenate(drawn)
        frequencies = label_frequencies(sequence, num_classes, period)
        return _deal(sequence, domain, num_classes, generator), frequencies

    return generate("exhaustive", labels, num_classes, order, gamma=gamma, period=period, seed=seed)


def _log_distributions(
    domain: Labels, num_classes: int, gamma: float, periods: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """(periods, C) logarithms of the p_i, -inf for the classes without images."""
    present = np.unique(domain)
    log_p = np.full((periods, num_classes), -np.inf)
    log_p[:, present] = log_dirichlet(gamma, (periods, len(present)), generator)
    return log_p


def _deal(sequence: Labels, domain: Labels, num_classes: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """An image for each label of the sequence, from shuffled decks, one after the other, of its class."""
    indices = np.empty_like(sequence)
    wanted_by_class = positions_by_class(sequence, num_classes)
    for wanted, images in zip(wanted_by_class, positions_by_class(domain, num_classes)):
        if len(wanted):
            decks = -(-len(wanted) // len(images))
            dealt = generator.permuted(np.tile(images, (decks, 1)), axis=1)
            indices[wanted] = dealt.ravel()[: len(wanted)]
    return indices


def _draw_from_left(
    left: NDArray[np.int64], log_p: NDArray[np.float64], size: int, generator: np.random.Generator
) -> Labels:
    """``size`` labels, one after another from p restricted to the classes left; takes them off ``left``.

    A draw of an exhausted class is rejected, which leaves a draw from the others: so many labels are drawn at once, and
    the rejected ones are drawn again. The restriction works on logarithms: at a small gamma, p is exactly 0 for all
    classes that are left.
    """
    accepted = np.empty(0, dtype=np.int64)
    while len(accepted) < size:
        p = np.exp(log_normalised(np.where(left > 0, log_p, -np.inf)))
        drawn = generator.choice(len(p), size - len(accepted), p=p)
        kept = drawn[earlier_occurrences(drawn) < left[drawn]]
        left -= np.bincount(kept, minlength=len(p))
        accepted = np.concatenate([accepted, kept])
    return accepted
