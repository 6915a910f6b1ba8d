"""Weather: snow, fog, and frost on the window."""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions import filters
from grotta.data.corruptions.frosting import crop, frost_pictures
from grotta.data.corruptions.geometry import zoom as zoomed
from grotta.data.corruptions.pixels import Generators, Images, to_bytes, to_unit
from grotta.data.corruptions.plasma import plasma
from grotta.data.corruptions.registry import corruption

GREY = np.array([0.299, 0.587, 0.114])

# mean, deviation, zoom, threshold, radius, sigma, share of the picture
# fmt: off
_SNOW_CIFAR = (
    (.1, .2, 1, .6, 8, 3, .95), (.1, .2, 1, .5, 10, 4, .9), (.15, .3, 1.75, .55, 10, 4, .9),
    (.25, .3, 2.25, .6, 12, 6, .85), (.3, .3, 1.25, .65, 14, 12, .8),
)
_SNOW_IMAGENET = (
    (.1, .3, 3, .5, 10, 4, .8), (.2, .3, 2, .5, 12, 4, .7), (.55, .3, 4, .9, 12, 8, .7),
    (.55, .3, 4.5, .85, 12, 8, .65), (.55, .3, 2.5, .85, 12, 12, .55),
)
# fmt: on


@corruption(
    "fog",
    cifar=((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    imagenet=((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
)
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


@corruption("snow", cifar=_SNOW_CIFAR, imagenet=_SNOW_IMAGENET)
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


@corruption(
    "frost",
    cifar=((1, 0.2, 5), (1, 0.3, 5), (0.9, 0.4, 5), (0.85, 0.4, 5), (0.75, 0.45, 5)),
    imagenet=((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
)
def frost(images: Images, generators: Generators, constants: tuple[float, float, int]) -> Images:
    """Lay a random crop of one of the frost pictures, shrunk ``shrink`` times, over each picture of (B, H, W, 3)."""
    share, strength, shrink = constants
    pictures = frost_pictures(images.shape[1:3], shrink)
    result = np.empty_like(images)
    for image, target, generator in zip(images, result, generators, strict=True):
        picture = pictures[generator.integers(len(pictures))]
        ice = crop(picture, images.shape[1:3], generator)
        target[...] = np.minimum(share * image + strength * ice, 255.0).astype(np.uint8)
    return result
