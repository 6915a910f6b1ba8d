"""`corrupt`: a corruption on a whole array of pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grotta._check import check_one_of, check_whole
from grotta.data.corruptions.pixels import Images
from grotta.data.corruptions.registry import SCALES, SEVERITIES, Corruption, Scale, find_corruption

MIN_SIDE = 8
CHUNK_VALUES = 1 << 20


def corrupt(
    images: Images,
    name: str,
    severity: int = 5,
    *,
    scale: Scale = "cifar",
    seed: int = 0,
    first_index: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Images:
    """Return a corrupted copy of uint8 pictures (N, H, W, 3), clipped to [0, 1] and truncated to uint8.

    Picture ``i`` of the array is number ``first_index + i``; what happens to it depends only on its pixels, on that
    number, and on ``seed``, ``name``, ``severity`` and ``scale``. So ``corrupt(x)[a:b]`` equals
    ``corrupt(x[a:b], first_index=a)``, and memory stays bounded however many pictures there are.

    ``scale`` chooses the published constants, made for 32-pixel (``"cifar"``) and 224-pixel pictures (``"imagenet"``);
    other sizes of at least 8 pixels per side work, with lengths still in those pixels: a 1000-pixel photograph is
    blurred less, relative to its size. ``progress`` is called with the number of pictures just finished.

    >>> clean = np.full((2, 32, 32, 3), 100, dtype=np.uint8)
    >>> corrupt(clean, "brightness", severity=3)[0, 0, 0].tolist()
    [138, 138, 138]
    """
    found = _check(images, name, severity, scale, seed, first_index)
    height, width = images.shape[1:3]
    chunk = max(1, CHUNK_VALUES // (height * width * 3))
    result = np.empty_like(images, order="C")
    for start in range(0, len(images), chunk):
        part = images[start : start + chunk]
        numbers = range(first_index + start, first_index + start + len(part))
        result[start : start + chunk] = _corrupt_chunk(part, found, severity, scale, seed, numbers)
        if progress is not None:
            progress(len(part))
    return result


def generator_for(key: tuple[int, ...], number: int) -> np.random.Generator:
    """Return the generator of one picture: its own stream for each key and number."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((*key, number))))


def _corrupt_chunk(images: Images, found: Corruption, severity: int, scale: Scale, seed: int, numbers: range) -> Images:
    constants = found.constants[scale][severity - 1]
    if not found.draws:
        made: Images = found.apply(images, constants)
    else:
        key = (seed, SCALES.index(scale), found.place, severity)
        made = found.apply(images, [generator_for(key, number) for number in numbers], constants)
    if not isinstance(made, np.ndarray) or made.dtype != np.uint8 or made.shape != images.shape:
        what = f"{made.dtype} {made.shape}" if isinstance(made, np.ndarray) else type(made).__name__
        raise ValueError(f"corruption {found.name!r} must return uint8 pictures {images.shape}, got {what}")
    return made


def _check(images: Images, name: str, severity: int, scale: str, seed: int, first_index: int) -> Corruption:
    if not isinstance(images, np.ndarray):
        raise TypeError(f"images must be a numpy array, got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise TypeError(f"images must be uint8 in 0..255, got dtype {images.dtype}")
    if images.ndim != 4 or images.shape[3] != 3:
        raise ValueError(f"images must have shape (N, H, W, 3), got {images.shape}")
    if min(images.shape[1:3]) < MIN_SIDE:
        raise ValueError(f"images must be at least {MIN_SIDE} pixels per side, got {images.shape[1:3]}")
    check_one_of("scale", scale, SCALES)
    check_whole("severity", severity, at_least=1, below=SEVERITIES + 1)
    check_whole("seed", seed, at_least=0)
    check_whole("first_index", first_index, at_least=0)
    return find_corruption(name)
