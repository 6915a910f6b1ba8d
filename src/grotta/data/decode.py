"""Decode a picture file, and bring it to the size of the network."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from grotta.data.arrays import Images
from grotta.data.errors import DamagedDataError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff"})


def short_side(size: int) -> int:
    """The usual resizing before a centre crop: 256 for 224, and in that ratio.

    >>> short_side(224), short_side(112)
    (256, 128)
    """
    return round(size * 256 / 224)


def read_picture(path: Path, resize: int, crop: int) -> Images:
    """A picture as (crop, crop, 3): short side to ``resize``, antialiased bilinear, then the centre.

    The last ones are remembered, since a stream may show a picture again.
    """
    return _decode(path, path.stat().st_mtime_ns if path.exists() else 0, resize, crop)


@lru_cache(maxsize=1024)
def _decode(path: Path, changed: int, resize: int, crop: int) -> Images:
    """``changed`` is only there so that a file that was replaced is not answered from memory."""
    pixels: Images = np.asarray(resize_and_crop(open_picture(path), resize, crop))
    return pixels


def open_picture(path: Path, *, upright: bool = False) -> Image.Image:
    """Decode a picture as RGB; ``upright`` also turns it as its orientation tag says, which data set readers do not."""
    try:
        with Image.open(path) as file:
            return (ImageOps.exif_transpose(file) if upright else file).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DamagedDataError(f"{path} cannot be read as a picture: {error}") from error


def resize_and_crop(picture: Image.Image, resize: int, crop: int) -> Image.Image:
    """Scale the short side to ``resize``, antialiased bilinear, and cut a square of side ``crop`` from the middle."""
    short = min(picture.size)
    if short != resize:
        width, height = (resize * side // short for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (round((side - crop) / 2) for side in picture.size)
    return picture.crop((left, top, left + crop, top + crop))
