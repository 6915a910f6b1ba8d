"""Blurs: out of focus, frosted glass, a moving camera, a zooming camera."""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions import filters
from grotta.data.corruptions.geometry import zoom
from grotta.data.corruptions.pixels import Generators, Images, Indices, to_bytes, to_unit
from grotta.data.corruptions.registry import corruption


@corruption(
    "defocus_blur",
    cifar=((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    imagenet=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
def defocus_blur(images: Images, constants: tuple[float, float]) -> Images:
    """Filter (B, H, W, 3) with a smoothed disk, mirrored at the edge."""
    radius, sigma = constants
    return to_bytes(filters.correlate(to_unit(images), filters.disk_kernel(radius, sigma)))


@corruption(
    "motion_blur",
    cifar=((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    imagenet=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
)
def motion_blur(images: Images, generators: Generators, constants: tuple[int, float]) -> Images:
    """Smear each picture of (B, H, W, 3) along an angle of its own, U[-45, 45] degrees."""
    radius, sigma = constants
    degrees = np.array([generator.uniform(-45, 45) for generator in generators])
    return filters.motion_blur(images, degrees, radius, sigma)


@corruption(
    "zoom_blur",
    cifar=((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    imagenet=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
)
def zoom_blur(images: Images, constants: tuple[float, float]) -> Images:
    """Average (B, H, W, 3) and its centre zooms by 1, 1 + step, ..., end excluded.

    As published, the factors come from a floating-point range, which runs one step further to 1.06 and to 1.11.
    """
    end, step = constants
    factors = np.arange(1, end, step)
    values = to_unit(images).astype(np.float32)
    precise = values.astype(np.float64)
    total = np.zeros_like(values)
    for factor in factors:
        # Each zoom in float64, their sum in float32: the published arithmetic, down to the byte.
        total += zoom(precise, factor)
    total += values
    total /= len(factors) + 1
    return to_bytes(total)


@corruption(
    "glass_blur",
    cifar=((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    imagenet=((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
def glass_blur(images: Images, generators: Generators, constants: tuple[float, int, int]) -> Images:
    """Blur (B, H, W, 3), let each pixel take a near one's value, ``rounds`` times over, and blur again."""
    sigma, reach, rounds = constants
    shaken = to_bytes(filters.gaussian_blur(to_unit(images), sigma))
    height, width = images.shape[1:3]
    inner = (max(height - 2 * reach, 0), max(width - 2 * reach, 0))
    size = (rounds, 2, *inner)
    offsets = np.stack([generator.integers(-reach, reach, size=size) for generator in generators])
    for i in range(rounds):
        source = glass_sources(offsets[:, i], height, width, reach)
        shaken = np.take_along_axis(shaken.reshape(len(images), -1, 3), source[..., None], axis=1)
    return to_bytes(filters.gaussian_blur(to_unit(shaken.reshape(images.shape)), sigma))


def glass_sources(offsets: Indices, height: int, width: int, reach: int) -> Indices:
    """Return, for each pixel (B, H·W), the pixel whose value it shows after one round of the glass.

    Rows and columns from n - reach down to reach + 1 are visited in descending order; each takes the value that its
    pixel at ``offsets`` (B, 2, H - 2 reach, W - 2 reach) shows at that moment. Where that pixel was visited before, its
    own source is the answer: the chains are followed by pointer doubling instead of pixel by pixel.
    """
    every = np.arange(height * width).reshape(height, width)
    inner = (slice(reach + 1, height - reach + 1), slice(reach + 1, width - reach + 1))
    visited = np.zeros((height, width), dtype=bool)
    visited[inner] = True
    source = np.broadcast_to(every, (len(offsets), height, width)).copy()
    source[:, *inner] += offsets[:, 0] * width + offsets[:, 1]
    source = source.reshape(len(offsets), -1)
    pending = visited.ravel()[source] & (source > every.ravel())
    while pending.any():
        following = np.take_along_axis(source, source, axis=1)
        still = pending & np.take_along_axis(pending, source, axis=1)
        source = np.where(pending, following, source)
        pending = still
    return source
