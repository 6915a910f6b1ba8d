"""Linear filters on batches of pictures: Gaussian, disk and motion kernels, and how to apply them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from grotta.data.corruptions.pixels import Array, Images

T = TypeVar("T", np.float32, np.float64)


def gaussian_weights(sigma: float, radius: int) -> Array:
    """Return the 2 radius + 1 samples of a Gaussian, with sum 1.

    >>> gaussian_weights(1.0, 1).round(3).tolist()
    [0.274, 0.452, 0.274]
    """
    if radius == 0:
        return np.ones(1)
    weights = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1.0) ** 2)
    return np.asarray(weights / weights.sum())


def gaussian_blur(values: Array, sigma: float) -> Array:
    """Blur the rows and columns of (B, H, W, C), cut at four sigmas; edge pixels are repeated outside."""
    radius = int(4.0 * sigma + 0.5)
    weights = gaussian_weights(sigma, radius)
    for axis in (1, 2):
        padding = [(radius, radius) if i == axis else (0, 0) for i in range(4)]
        padded = np.moveaxis(np.pad(values, padding, mode="edge"), axis, 0)
        values = np.moveaxis(_symmetric(padded, weights), 0, axis)
    return values


def _symmetric(padded: npt.NDArray[T], weights: npt.NDArray[T]) -> npt.NDArray[T]:
    """Filter the first axis with symmetric weights, outermost pair first."""
    radius = len(weights) // 2
    length = len(padded) - 2 * radius
    total = padded[radius : radius + length] * weights[radius]
    for step in range(radius, 0, -1):
        pair = padded[radius - step :][:length] + padded[radius + step :][:length]
        total += pair * weights[radius - step]
    return np.asarray(total)


def disk_kernel(radius: float, sigma: float) -> Array:
    """Return a disk of sum 1, smoothed by a 3x3 (5x5 beyond radius 8) Gaussian.

    The grid is cut at 8, or at the radius if it is larger, and the smoothing mirrors the disk there: a disk that
    fills its grid comes out with a sum of 1.01, which the published pictures have too.
    """
    reach, smoothing = (8, 1) if radius <= 8 else (int(radius), 2)
    grid = np.arange(-reach, reach + 1)
    disk = (grid[:, None] ** 2 + grid**2 <= radius**2).astype(np.float32)
    disk /= disk.sum()
    weights = gaussian_weights(sigma, smoothing).astype(np.float32)
    for _ in range(2):
        padded = np.pad(disk, ((smoothing, smoothing), (0, 0)), mode="reflect")
        disk = _symmetric(padded, weights).T
    return disk.astype(np.float64)


def correlate(values: Array, kernel: Array) -> Array:
    """Filter (B, H, W, C) with a square, point-symmetric kernel of odd size, mirrored at the edge (reflect-101)."""
    reach = len(kernel) // 2
    height, width = values.shape[1:3]
    padded = np.pad(values, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="reflect")
    size = (height + 2 * reach, width + 2 * reach)
    spectrum = np.fft.rfft2(padded, axes=(1, 2))
    spectrum *= np.fft.rfft2(kernel, size)[:, :, None]
    full = np.fft.irfft2(spectrum, size, axes=(1, 2))
    return full[:, 2 * reach :, 2 * reach :]


def motion_offsets(radius: int, degrees: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the row and column steps (2 radius + 1, B) from a pixel along each angle: ceil(i direction - 1/2).

    >>> [steps[:, 0].tolist() for steps in motion_offsets(2, np.array([45.0]))]
    [[0, 1, 1, 2, 3], [0, 1, 1, 2, 3]]
    """
    taps = np.arange(2 * radius + 1)[:, None]
    angles = np.deg2rad(degrees)
    rows = np.ceil(taps * np.sin(angles) - 0.5).astype(np.int64)
    columns = np.ceil(taps * np.cos(angles) - 0.5).astype(np.int64)
    return rows, columns


def motion_blur(images: Images, degrees: Array, radius: int, sigma: float) -> Images:
    """Smear each picture of (B, H, W, C) along its own angle with a one-sided Gaussian.

    y[p] = Σ_i w_i x[p + o_i], w_i ~ exp(-i² / 2 sigma²), i = 0 .. 2 radius, o_i the pixels on the line; the edge pixel
    is repeated outside. This is ImageMagick's motion blur, which made the published pictures: it rounds to 16 bits and
    truncates those to 8, so that a flat region stays what it is.
    """
    batch, height, width, channels = images.shape
    reach = 2 * radius
    weights = np.exp(-0.5 * (np.arange(reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="edge")
    # With columns and channels merged, a shifted copy of every picture is one gather of contiguous rows.
    flat = padded.reshape(batch, height + 2 * reach, -1)
    windows = sliding_window_view(flat, (height, width * channels), axis=(1, 2))
    smeared = np.zeros((batch, height, width * channels), dtype=np.float32)
    every = np.arange(batch)
    for weight, rows, columns in zip(weights, *motion_offsets(radius, degrees), strict=True):
        smeared += np.float32(weight) * windows[every, reach + rows, (reach + columns) * channels]
    smeared *= 257
    deep = np.rint(smeared, out=smeared).astype(np.uint16)
    return (deep // 257).astype(np.uint8).reshape(images.shape)
