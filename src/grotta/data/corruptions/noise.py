"""Noise that is drawn value by value: Gaussian, shot and impulse noise."""

from __future__ import annotations

from grotta.data.corruptions.pixels import Generators, Images, to_bytes, to_unit
from grotta.data.corruptions.registry import corruption


@corruption("gaussian_noise", cifar=(0.04, 0.06, 0.08, 0.09, 0.10), imagenet=(0.08, 0.12, 0.18, 0.26, 0.38))
def gaussian_noise(images: Images, generators: Generators, sigma: float) -> Images:
    """Add N(0, sigma²) to every value of (B, H, W, 3)."""
    values = to_unit(images)
    for value, generator in zip(values, generators, strict=True):
        value += generator.normal(scale=sigma, size=value.shape)
    return to_bytes(values)


@corruption("shot_noise", cifar=(500, 250, 100, 75, 50), imagenet=(60, 25, 12, 5, 3))
def shot_noise(images: Images, generators: Generators, photons: float) -> Images:
    """Count photons: Poisson(photons x) / photons for every value x of (B, H, W, 3)."""
    values = to_unit(images)
    values *= photons
    for value, generator in zip(values, generators, strict=True):
        value[...] = generator.poisson(value)
    values /= photons
    return to_bytes(values)


@corruption("impulse_noise", cifar=(0.01, 0.02, 0.03, 0.05, 0.07), imagenet=(0.03, 0.06, 0.09, 0.17, 0.27))
def impulse_noise(images: Images, generators: Generators, amount: float) -> Images:
    """Replace the share ``amount`` of the values of (B, H, W, 3), half by white and half by black."""
    result = images.copy()
    for image, generator in zip(result, generators, strict=True):
        lot = generator.random(image.shape)
        image[lot < amount] = 0
        image[lot < amount / 2] = 255
    return result
