"""RGB to hue, saturation and value, and back, in the arithmetic of the usual textbook formulas.

Shorter formulas exist, but a value that lands on a whole number of 255ths is truncated up or down by its last bit:
these steps give the published bytes.
"""

from __future__ import annotations

import numpy as np

from grotta.data.corruptions.pixels import Array

# Which of (value, low, falling, rising) red, green and blue are in each sixth of the colour circle.
SECTORS = np.array([[0, 3, 1], [2, 0, 1], [1, 0, 3], [1, 2, 0], [3, 1, 0], [0, 1, 2]])


def rgb_to_hsv(values: Array) -> tuple[Array, Array, Array]:
    """Return hue in turns, saturation and value (...) of colours (..., 3) in [0, 1]; grey has hue 0.

    >>> [part.tolist() for part in rgb_to_hsv(np.array([[0.0, 0.5, 0.0], [0.2, 0.2, 0.2]]))]
    [[0.3333333333333333, 0.0], [1.0, 0.0], [0.5, 0.2]]
    """
    red, green, blue = np.moveaxis(values, -1, 0)
    value = values.max(axis=-1)
    spread = value - values.min(axis=-1)
    coloured = spread > 0
    divisor = np.where(coloured, spread, 1.0)
    sixths = np.where(green == value, 2.0 + (blue - red) / divisor, (green - blue) / divisor)
    sixths = np.where(blue == value, 4.0 + (red - green) / divisor, sixths)
    hue = np.where(coloured, (sixths / 6.0) % 1.0, 0.0)
    return hue, spread / np.where(coloured, value, 1.0), value


def hsv_to_rgb(hue: Array, saturation: Array, value: Array) -> Array:
    """Return colours (..., 3) from hue in turns, saturation and value (...)."""
    sector = np.floor(hue * 6.0)
    within = hue * 6.0 - sector
    low = value * (1.0 - saturation)
    falling = value * (1.0 - within * saturation)
    rising = value * (1.0 - (1.0 - within) * saturation)
    levels = np.stack([value, low, falling, rising], axis=-1)
    return np.take_along_axis(levels, SECTORS[sector.astype(np.intp) % 6], axis=-1)
