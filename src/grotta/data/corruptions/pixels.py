"""Pictures as arrays: the types of this package and the way to and from 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Images = npt.NDArray[np.uint8]
Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]
Indices = npt.NDArray[np.intp]
Generators = Sequence[np.random.Generator]


def to_unit(images: Images) -> Array:
    """Return 0..255 as 0..1, in float64: a rounding error of float32 could cross the truncation on the way back."""
    return images / 255.0


def to_bytes(values: Floats) -> Images:
    """Clip to 0..1, multiply by 255 and truncate, as the published arrays were made.

    >>> to_bytes(np.array([-1.0, 0.5, 0.999, 2.0])).tolist()
    [0, 127, 254, 255]
    """
    clipped = np.clip(values, 0.0, 1.0)
    clipped *= 255.0
    return clipped.astype(np.uint8)
