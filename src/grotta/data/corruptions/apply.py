"""`corrupt`: one of the fifteen corruptions on a whole array of pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grotta.data.corruptions import blur, digital, noise, weather
from grotta.data.corruptions.elastic import elastic_transform
from grotta.data.corruptions.pixels import Generators, Images
from grotta.data.corruptions.table import CONSTANTS, CORRUPTIONS, SCALES, Scale

FORMULAS: dict[str, Callable[[Images, Any], Images]] = {
    "defocus_blur": blur.defocus_blur,
    "contrast": digital.contrast,
    "zoom_blur": blur.zoom_blur,
    "brightness": digital.brightness,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}
RANDOM: dict[str, Callable[[Images, Generators, Any], Images]] = {
    "motion_blur": blur.motion_blur,
    "snow": weather.snow,
    "fog": weather.fog,
    "shot_noise": noise.shot_noise,
    "elastic_transform": elastic_transform,
    "glass_blur": blur.glass_blur,
    "gaussian_noise": noise.gaussian_noise,
    "impulse_noise": noise.impulse_noise,
}
FROST_SHRINK: dict[Scale, int] = {"cifar": 5, "imagenet": 1}

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
    other sizes of at least 8 pixels a side work, with lengths still in those pixels: a 1000-pixel photograph is
    blurred less, relative to its size. ``progress`` is called with the number of pictures just finished.

    >>> clean = np.full((2, 32, 32, 3), 100, dtype=np.uint8)
    >>> corrupt(clean, "brightness", severity=3)[0, 0, 0].tolist()
    [138, 138, 138]
    """
    _check(images, name, severity, scale, seed, first_index)
    height, width = images.shape[1:3]
    chunk = max(1, CHUNK_VALUES // (height * width * 3))
    result = np.empty_like(images, order="C")
    for start in range(0, len(images), chunk):
        part = images[start : start + chunk]
        numbers = range(first_index + start, first_index + start + len(part))
        result[start : start + chunk] = _corrupt_chunk(part, name, severity, scale, seed, numbers)
        if progress is not None:
            progress(len(part))
    return result


def generator_for(key: tuple[int, ...], number: int) -> np.random.Generator:
    """Return the generator of one picture: its own stream for each key and number."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((*key, number))))


def _corrupt_chunk(images: Images, name: str, severity: int, scale: Scale, seed: int, numbers: range) -> Images:
    constants = CONSTANTS[name][scale][severity - 1]
    if name in FORMULAS:
        return FORMULAS[name](images, constants)
    key = (seed, SCALES.index(scale), CORRUPTIONS.index(name), severity)
    generators = [generator_for(key, number) for number in numbers]
    if name == "frost":
        return weather.frost(images, generators, constants, FROST_SHRINK[scale])
    return RANDOM[name](images, generators, constants)


def _check(images: Images, name: str, severity: int, scale: str, seed: int, first_index: int) -> None:
    if not isinstance(images, np.ndarray):
        raise TypeError(f"images must be a numpy array, got {type(images).__name__}")
    if images.dtype != np.uint8:
        raise TypeError(f"images must be uint8 in 0..255, got dtype {images.dtype}")
    if images.ndim != 4 or images.shape[3] != 3:
        raise ValueError(f"images must have shape (N, H, W, 3), got {images.shape}")
    if min(images.shape[1:3]) < MIN_SIDE:
        raise ValueError(f"images must be at least {MIN_SIDE} pixels a side, got {images.shape[1:3]}")
    if name not in CORRUPTIONS:
        raise ValueError(f"name must be one of {', '.join(CORRUPTIONS)}; got {name!r}")
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {scale!r}")
    if not _is_whole(severity) or not 1 <= severity <= 5:
        raise ValueError(f"severity must be a whole number from 1 to 5, got {severity!r}")
    for argument, value in (("seed", seed), ("first_index", first_index)):
        if not _is_whole(value) or value < 0:
            raise ValueError(f"{argument} must be a whole number from 0 on, got {value!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
