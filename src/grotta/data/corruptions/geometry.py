"""Resampling of batches of pictures: centre zoom, smoothing matrices and free bilinear sampling."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from grotta.data.corruptions.filters import gaussian_weights
from grotta.data.corruptions.pixels import Array, Indices


def mirror(index: Indices, length: int) -> Indices:
    """Fold indices into 0 .. length - 1 around the edge pixels (``reflect-101``: c b | a b c | b a).

    >>> mirror(np.array([-2, -1, 0, 2, 3]), 3).tolist()
    [2, 1, 0, 2, 1]
    """
    return np.asarray(length - 1 - np.abs(length - 1 - np.mod(index, 2 * length - 2)))


def reflect(index: Indices, length: int) -> Indices:
    """Fold indices into 0 .. length - 1 around the borders (``reflect``: b a | a b c | c b).

    >>> reflect(np.array([-2, -1, 0, 2, 3]), 3).tolist()
    [1, 0, 0, 2, 2]
    """
    folded = np.mod(index, 2 * length)
    return np.asarray(np.minimum(folded, 2 * length - 1 - folded))


def zoom(values: Array, factor: float) -> Array:
    """Enlarge the centre of pictures (B, H, W, C) by ``factor``, bilinearly, without changing their size.

    Along each side the middle ceil(n / factor) pixels are stretched, ends onto ends, to round(that factor) pixels, of
    which the middle n are kept.

    >>> zoom(np.arange(64.0).reshape(1, 8, 8, 1), 2.0)[0, 0, :4, 0].round(2).tolist()
    [18.0, 18.43, 18.86, 19.29]
    """
    import torch
    import torch.nn.functional as F

    sides = values.shape[1:3]
    crops = [math.ceil(side / factor) for side in sides]
    stretched = [round(crop * factor) for crop in crops]
    top, left = ((side - crop) // 2 for side, crop in zip(sides, crops, strict=True))
    centre = torch.from_numpy(values[:, top : top + crops[0], left : left + crops[1]]).permute(0, 3, 1, 2)
    large = F.interpolate(centre, size=stretched, mode="bilinear", align_corners=True)
    top, left = ((large_side - side) // 2 for large_side, side in zip(stretched, sides, strict=True))
    kept = large[:, :, top : top + sides[0], left : left + sides[1]]
    return np.asarray(kept.permute(0, 2, 3, 1).numpy())


def smoothing_matrix(length: int, sigma: float, truncate: float) -> Array:
    """Return the (length, length) matrix of a Gaussian filter on a line that is reflected at its borders."""
    radius = int(truncate * sigma + 0.5)
    weights = gaussian_weights(sigma, radius)
    matrix = np.zeros((length, length))
    line = np.arange(length)
    columns = reflect(line[:, None] + np.arange(-radius, radius + 1), length)
    np.add.at(matrix, (line[:, None], columns), weights)
    return matrix


def sample(values: Array, rows: Array, columns: Array, fold: Callable[[Indices, int], Indices]) -> Array:
    """Read (B, H, W, C) bilinearly at the positions ``rows``, ``columns`` (B, H, W); ``fold`` brings indices inside."""
    batch, height, width, channels = values.shape
    flat = values.reshape(-1, channels)
    first = np.arange(batch)[:, None, None] * height
    top, left = np.floor(rows), np.floor(columns)
    down, right = (rows - top)[..., None], (columns - left)[..., None]
    upper, lower = ((first + fold(top.astype(np.intp) + i, height)) * width for i in (0, 1))
    near, far = (fold(left.astype(np.intp) + i, width) for i in (0, 1))
    above = _between(flat[upper + near], flat[upper + far], right)
    below = _between(flat[lower + near], flat[lower + far], right)
    return _between(above, below, down)


def _between(start: Array, end: Array, share: Array) -> Array:
    """Return start + (end - start) share in place of ``end``: exact where both are equal, for flat regions."""
    end -= start
    end *= share
    end += start
    return end
