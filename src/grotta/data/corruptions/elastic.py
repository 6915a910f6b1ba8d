"""Elastic distortion: a random affine map, then a smooth random displacement of every pixel."""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions.geometry import mirror, reflect, sample, smoothing_matrix
from grotta.data.corruptions.pixels import Array, Generators, Images, to_bytes, to_unit
from grotta.data.corruptions.registry import corruption


def _times(unit: int, *rows: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(unit * value for value in row) for row in rows)


# The published unit of the imagenet scale is 244, not 224.
@corruption(
    "elastic_transform",
    cifar=_times(32, (0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    imagenet=_times(244, (2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
)
def elastic_transform(images: Images, generators: Generators, constants: tuple[float, float, float]) -> Images:
    """Move three points of the centre square by U[-shift, shift], then each pixel by amplitude Gaussian(U[-1, 1])."""
    amplitude, sigma, shift = constants
    height, width = images.shape[1:3]
    shifts, pushes = [], []
    for generator in generators:
        shifts.append(generator.uniform(-shift, shift, size=(3, 2)))
        pushes.append(generator.uniform(-1, 1, size=(2, height, width)))
    values = sample(to_unit(images), *affine_positions(np.stack(shifts), height, width), mirror)
    if amplitude:
        across, down = np.moveaxis(displacements(np.stack(pushes), amplitude, sigma), 1, 0)
        rows, columns = np.mgrid[:height, :width]
        values = sample(values, rows + down, columns + across, reflect)
    return to_bytes(values)


def affine_positions(shifts: Array, height: int, width: int) -> tuple[Array, Array]:
    """Return the rows and columns (B, H, W) to read so that three points p, as (x, y), appear at p + shifts (B, 3, 2).

    The points are corners of the centre square of half side min(H, W) // 3.
    """
    half = min(height, width) // 3
    points = np.array([width // 2, height // 2]) + half * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = np.concatenate([points + shifts, np.ones((len(shifts), 3, 1))], axis=-1)
    back = np.linalg.solve(moved, np.broadcast_to(points.astype(float), shifts.shape))
    rows, columns = np.mgrid[:height, :width]
    grid = np.stack([columns, rows, np.ones_like(rows)], axis=-1)
    positions = grid.reshape(-1, 3) @ back
    columns_, rows_ = np.moveaxis(positions.reshape(len(shifts), height, width, 2), -1, 0)
    return rows_, columns_


def displacements(pushes: Array, amplitude: float, sigma: float) -> Array:
    """Smooth pushes (B, 2, H, W) with a Gaussian cut at three sigmas, reflected at the border; times ``amplitude``."""
    height, width = pushes.shape[2:]
    down, across = smoothing_matrix(height, sigma, 3.0), smoothing_matrix(width, sigma, 3.0)
    return np.asarray(amplitude * (down @ (pushes @ across.T)))
