"""What all generators share: checked input, one random generator per domain, the spec."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grotta._check import check_positive, check_whole
from grotta.streams.stream import VERSION, Stream, digest

Labels = NDArray[np.int64]
Order = tuple[NDArray[np.int64], NDArray[np.float64]]
"""The indices of one domain in stream order, and the label distribution of each of its periods."""


def generate(
    kind: str,
    labels: Sequence[ArrayLike],
    num_classes: int,
    order: Callable[[Labels, np.random.Generator], Order],
    *,
    gamma: float | None,
    period: int,
    seed: int,
) -> Stream:
    """Make a stream by ordering each domain on its own.

    Each domain gets the generator of its place among the domains, so that its order depends neither on the number
    nor on the lengths of the others.
    """
    num_classes = check_whole("num_classes", num_classes, at_least=1)
    period = check_whole("period", period, at_least=1)
    seed = check_whole("seed", seed, at_least=0)
    gamma = None if gamma is None else check_positive("gamma", gamma)
    domains = [_check_domain(number, values, num_classes) for number, values in enumerate(labels)]
    if not domains:
        raise ValueError("labels must hold at least one domain")
    seeds = np.random.SeedSequence(seed).spawn(len(domains))
    ordered = [order(domain, np.random.default_rng(child)) for domain, child in zip(domains, seeds)]
    spec = stream_spec(domains, kind=kind, num_classes=num_classes, gamma=gamma, period=period, seed=seed)
    return Stream(tuple(indices for indices, _ in ordered), np.concatenate([p for _, p in ordered]), spec)


def stream_spec(labels: Sequence[Labels], **made_with: Any) -> dict[str, Any]:
    """What a stream was made from: its settings, and the lengths and a digest of the domains' ``labels``."""
    lengths = [len(domain) for domain in labels]
    return {"version": VERSION, **made_with, "domain_lengths": lengths, "labels_sha256": digest("labels", *labels)}


def period_sizes(samples: int, period: int) -> NDArray[np.int64]:
    """The sizes of round(samples / period) periods, at least one, equal to within one sample.

    >>> period_sizes(1030, 100).tolist()
    [103, 103, 103, 103, 103, 103, 103, 103, 103, 103]
    """
    count = max(1, round(samples / period))
    return np.diff(np.arange(count + 1, dtype=np.int64) * samples // count)


def positions_by_class(labels: Labels, num_classes: int) -> list[NDArray[np.int64]]:
    """Where each class occurs, in order.

    >>> [positions.tolist() for positions in positions_by_class(np.array([2, 0, 2]), num_classes=3)]
    [[1], [], [0, 2]]
    """
    counts = np.bincount(labels, minlength=num_classes)
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])


def earlier_occurrences(labels: Labels) -> NDArray[np.int64]:
    """How often the same label occurred before each label.

    >>> earlier_occurrences(np.array([2, 0, 2, 2])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    occurrences = np.empty_like(labels)
    occurrences[order] = np.arange(len(labels)) - np.searchsorted(ordered, ordered)
    return occurrences


def label_frequencies(labels: Labels, num_classes: int, period: int) -> NDArray[np.float64]:
    """(periods, C) relative frequencies of the labels in each period of a domain.

    >>> label_frequencies(np.array([0, 0, 1, 1]), num_classes=2, period=2)
    array([[1., 0.],
           [0., 1.]])
    """
    sizes = period_sizes(len(labels), period)
    cells = np.repeat(np.arange(len(sizes)), sizes) * num_classes + labels
    counts = np.bincount(cells, minlength=len(sizes) * num_classes).reshape(len(sizes), num_classes)
    return counts / sizes[:, None]


def _check_domain(number: int, values: ArrayLike, num_classes: int) -> Labels:
    labels = np.asarray(values)
    name = f"labels[{number}]"
    if labels.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array, the labels of one domain, got shape {labels.shape}")
    if not len(labels):
        raise ValueError(f"{name} is empty: a domain needs at least one image")
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"{name} must hold integers, got {labels.dtype}")
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest < 0 or highest >= num_classes:
        raise ValueError(
            f"{name} must be in [0, {num_classes}), as num_classes is {num_classes}; got {lowest} to {highest}"
        )
    return labels.astype(np.int64)
