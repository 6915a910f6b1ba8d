"""The stream as it was filmed: nothing is drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grotta._check import check_whole
from grotta.streams.generate import Labels, period_sizes, stream_spec
from grotta.streams.stream import Stream

UNKNOWN = -1  # the label of a picture without one


def recorded(
    order: Sequence[ArrayLike] | ArrayLike, domains: Sequence[str], num_classes: int, *, period: int = 100
) -> Stream:
    """Every picture once, in the order in which it was recorded; one domain (a camera) after the other.

    Args:
        order: the labels of the pictures in recorded order, -1 where unknown: one 1-D integer array per domain; or a
            single one for all pictures, with ``domains`` then naming the domain of each picture.
        domains: the names of the domains, one per array of ``order``, or one per picture.
        num_classes: C.
        period: the number of samples that one row of ``label_distributions`` counts; the order does not depend on it.

    Returns:
        The stream. Its ``indices`` count the pictures of each domain in recorded order; its ``label_distributions`` are
        the frequencies of the known labels in each period, 0 where none is known.

    >>> stream = recorded([0, 0, 1, -1], ["gate", "gate", "yard", "gate"], num_classes=2)
    >>> [indices.tolist() for indices in stream.indices], stream.label_distributions.tolist()
    ([[0, 1, 2], [0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    num_classes = check_whole("num_classes", num_classes, at_least=1)
    period = check_whole("period", period, at_least=1)
    names, labels = _by_domain(order, list(domains))
    for name, values in zip(names, labels):
        if len(values) and not (values.min() >= UNKNOWN and values.max() < num_classes):
            found = f"{values.min()} to {values.max()}"
            raise ValueError(f"order must hold labels in [0, {num_classes}), or -1; those of {name!r} are {found}")
    made_with = {"kind": "recorded", "num_classes": num_classes, "gamma": None, "period": period, "seed": None}
    spec = stream_spec(labels, **made_with, domains=names)
    frequencies = [_known_frequencies(values, num_classes, period) for values in labels]
    return Stream(tuple(np.arange(len(values), dtype=np.int64) for values in labels), np.concatenate(frequencies), spec)


def _by_domain(order: Sequence[ArrayLike] | ArrayLike, domains: list[str]) -> tuple[list[str], list[Labels]]:
    """The names of the domains in order of appearance, and the labels of each."""
    single = all(isinstance(value, int | np.integer) for value in order) if isinstance(order, list | tuple) else True
    if isinstance(order, list | tuple) and not single:
        names, arrays = domains, [np.asarray(values) for values in order]
    else:
        flat = np.asarray(order)
        if flat.ndim != 1 or len(flat) != len(domains):
            raise ValueError(f"domains must name the domain of each of the {len(flat)} pictures, got {len(domains)}")
        names, place = list(dict.fromkeys(domains)), np.asarray(domains)
        arrays = [flat[place == name] for name in names]
    if len(names) != len(arrays) or len(set(names)) < len(names) or not names:
        raise ValueError(f"domains must be {len(arrays) or 'at least 1'} different names, got {names}")
    for name, values in zip(names, arrays):
        if values.ndim != 1 or not len(values) or not np.issubdtype(values.dtype, np.integer):
            raise ValueError(f"order must hold integers (n,) for {name!r}, got {values.dtype} {values.shape}")
    return names, [values.astype(np.int64) for values in arrays]


def _known_frequencies(labels: Labels, num_classes: int, period: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(periods, C) relative frequencies of the labels that are known."""
    sizes = period_sizes(len(labels), period)
    known = labels != UNKNOWN
    cells = (np.repeat(np.arange(len(sizes)), sizes) * num_classes + labels)[known]
    counts = np.bincount(cells, minlength=len(sizes) * num_classes).reshape(len(sizes), num_classes)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
