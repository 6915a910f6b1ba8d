"""Weather: snow, fog, and frost on the window."""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions import filters
from grotta.data.corruptions.frosting import crop, frost_pictures
from grotta.data.corruptions.geometry import zoom as zoomed
from grotta.data.corruptions.pixels import Generators, Images, to_bytes, to_unit
from grotta.data.corruptions.plasma import plasma

GREY = np.array([0.299, 0.587, 0.114])


def fog(images: Images, generators: Generators, constants: tuple[float, float]) -> Images:
    """Add ``strength`` times a plasma fractal to (B, H, W, 3) and scale by max / (max + strength)."""
    strength, decay = constants
    height, width = images.shape[1:3]
    side = 1 << (max(height, width) - 1).bit_length()
    draws = np.stack([generator.uniform(-1, 1, size=side * side - 1) for generator in generators])
    values = to_unit(images)
    brightest = values.max(axis=(1, 2, 3), keepdims=True)
    values += strength * plasma(draws, decay)[:, :height, :width, None]
    values *= brightest / (brightest + strength)
    return to_bytes(values)


def snow(
    images: Images, generators: Generators, constants: tuple[float, float, float, float, int, float, float]
) -> Images:
    """Whiten (B, H, W, 3) and let flakes drift over it: a blurred layer of bright dots, and the same upside down."""
    mean, deviation, zoom, threshold, radius, sigma, share = constants
    height, width = images.shape[1:3]
    draws = [(g.normal(mean, deviation, size=(height, width)), g.uniform(-135, -45)) for g in generators]
    flakes = zoomed(np.stack([layer for layer, _ in draws])[..., None], zoom)
    flakes[flakes < threshold] = 0
    degrees = np.array([angle for _, angle in draws])
    layer = to_unit(filters.motion_blur(to_bytes(flakes), degrees, radius, sigma))
    values = to_unit(images)
    whitened = np.maximum(values, (values @ GREY)[..., None] * 1.5 + 0.5)
    return to_bytes(share * values + (1 - share) * whitened + layer + layer[:, ::-1, ::-1])


def frost(images: Images, generators: Generators, constants: tuple[float, float], shrink: int) -> Images:
    """Lay a random crop of one of the frost pictures, shrunk ``shrink`` times, over each picture of (B, H, W, 3)."""
    share, strength = constants
    pictures = frost_pictures(images.shape[1:3], shrink)
    result = np.empty_like(images)
    for image, target, generator in zip(images, result, generators, strict=True):
        picture = pictures[generator.integers(len(pictures))]
        ice = crop(picture, images.shape[1:3], generator)
        target[...] = np.minimum(share * image + strength * ice, 255.0).astype(np.uint8)
    return result
