"""The five frost pictures and random crops of them."""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.resources import files

import numpy as np
from PIL import Image

from grotta.data.corruptions.pixels import Images

# Two of the five published pictures are the same one.
PICTURES = ("frost1.jpg", "frost2.jpg", "frost2.jpg", "frost4.jpg", "frost5.jpg")


@lru_cache(maxsize=4)
def frost_pictures(size: tuple[int, int], shrink: int) -> tuple[Images, ...]:
    """Return the frost pictures, shrunk ``shrink`` times and enlarged where one does not cover ``size``.

    >>> [picture.shape for picture in frost_pictures((32, 32), shrink=5)]
    [(120, 180, 3), (63, 112, 3), (63, 112, 3), (70, 105, 3), (99, 132, 3)]
    """
    folder = files("grotta") / "data" / "assets" / "frost"
    pictures = []
    for name in PICTURES:
        with (folder / name).open("rb") as file:
            picture = Image.open(file).convert("RGB")
        # Bilinear shrinking by 5 without smoothing reads every fifth pixel, from the third on.
        pixels = np.asarray(picture)[shrink // 2 :: shrink, shrink // 2 :: shrink]
        pictures.append(_cover(pixels, size))
    return tuple(pictures)


def _cover(picture: Images, size: tuple[int, int]) -> Images:
    """Enlarge a picture, sides in proportion, until a crop of ``size`` has room to move by a pixel."""
    factor = max((size[0] + 1) / picture.shape[0], (size[1] + 1) / picture.shape[1])
    if factor <= 1:
        return picture
    height, width = (math.ceil(side * factor) for side in picture.shape[:2])
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BICUBIC))


def crop(picture: Images, size: tuple[int, int], generator: np.random.Generator) -> Images:
    """Cut a random ``size`` (H, W) out of a larger picture."""
    top = generator.integers(picture.shape[0] - size[0])
    left = generator.integers(picture.shape[1] - size[1])
    return picture[top : top + size[0], left : left + size[1]]
