"""The plasma fractal of the fog: a random landscape by diamond-square on a torus."""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions.pixels import Array


def plasma(draws: Array, decay: float) -> Array:
    """Return landscapes (B, N, N) in 0..1 from draws (B, N² - 1) of U[-1, 1], N a power of two.

    The height at each new point is the mean of its four neighbours plus a draw times the square of the wibble, which
    starts at 100 and is divided by ``decay`` after each halving of the step.
    """
    side = round((draws.shape[1] + 1) ** 0.5)
    land = np.zeros((len(draws), side, side))
    wibble, step, used = 100.0, side, 0

    def wobbled(neighbours: Array) -> Array:
        nonlocal used
        count = neighbours[0].size
        drawn = draws[:, used : used + count].reshape(neighbours.shape)
        used += count
        return neighbours / 4 + wibble**2 * drawn

    while step >= 2:
        half = step // 2
        corners = land[:, ::step, ::step]
        rows = corners + np.roll(corners, -1, axis=1)
        centres = land[:, half::step, half::step]
        centres[...] = wobbled(rows + np.roll(rows, -1, axis=2))
        across = corners + np.roll(corners, -1, axis=2)
        land[:, ::step, half::step] = wobbled(centres + np.roll(centres, 1, axis=1) + across)
        down = corners + np.roll(corners, -1, axis=1)
        land[:, half::step, ::step] = wobbled(centres + np.roll(centres, 1, axis=2) + down)
        step = half
        wibble /= decay

    land -= land.min(axis=(1, 2), keepdims=True)
    land /= land.max(axis=(1, 2), keepdims=True)
    return land
