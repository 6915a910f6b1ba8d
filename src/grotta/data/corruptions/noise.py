"""Noise that is drawn value by value: Gaussian, shot and impulse noise."""

from __future__ import annotations

from grotta.data.corruptions.pixels import Generators, Images, to_bytes, to_unit


def gaussian_noise(images: Images, generators: Generators, sigma: float) -> Images:
    """Add N(0, sigma²) to every value of (B, H, W, 3)."""
    values = to_unit(images)
    for value, generator in zip(values, generators, strict=True):
        value += generator.normal(scale=sigma, size=value.shape)
    return to_bytes(values)


def shot_noise(images: Images, generators: Generators, photons: float) -> Images:
    """Count photons: Poisson(photons x) / photons for every value x of (B, H, W, 3)."""
    values = to_unit(images)
    values *= photons
    for value, generator in zip(values, generators, strict=True):
        value[...] = generator.poisson(value)
    values /= photons
    return to_bytes(values)


def impulse_noise(images: Images, generators: Generators, amount: float) -> Images:
    """Replace the share ``amount`` of the values of (B, H, W, 3), half by white and half by black."""
    result = images.copy()
    for image, generator in zip(result, generators, strict=True):
        lot = generator.random(image.shape)
        image[lot < amount] = 0
        image[lot < amount / 2] = 255
    return result
