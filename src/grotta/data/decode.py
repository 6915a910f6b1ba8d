"""Decode a picture file, and bring it to the size of the network."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from grotta.data.arrays import Images
from grotta.data.errors import DamagedDataError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff"})
# Formats whose 16-bit pictures some versions of Pillow call I instead of I;16.
_SIXTEEN_BITS_AS_I = frozenset({"PNG", "PPM"})
# Of a picture longer than this many times its short side only the middle is scaled, which is the same up to rounding:
# scaling all of a line one pixel high would take gigabytes.
LONGEST = 16


def short_side(size: int) -> int:
    """The usual resizing before a centre crop: 256 for 224, and in that ratio.

    >>> short_side(224), short_side(112)
    (256, 128)
    """
    return round(size * 256 / 224)


def read_picture(path: Path, resize: int, crop: int) -> Images:
    """A picture as (crop, crop, 3): short side to ``resize``, antialiased bilinear, then the centre.

    Recent ones are cached, since a stream may show a picture again.
    """
    return _decode(path, path.stat().st_mtime_ns if path.exists() else 0, resize, crop)


@lru_cache(maxsize=1024)
def _decode(path: Path, changed: int, resize: int, crop: int) -> Images:
    """``changed`` makes sure that a replaced file is read again."""
    pixels: Images = np.asarray(resize_and_crop(open_picture(path), resize, crop))
    return pixels


def open_picture(path: Path, *, upright: bool = False) -> Image.Image:
    """Decode a picture as RGB; ``upright`` also rotates it by its orientation tag, which data set readers do not."""
    try:
        with Image.open(path) as file:
            sixteen_bits = file.mode.startswith("I;16") or (file.mode == "I" and file.format in _SIXTEEN_BITS_AS_I)
            picture = ImageOps.exif_transpose(file) if upright else file
            if sixteen_bits:
                picture = _eight_bits(picture)
            elif file.mode in {"I", "F"}:
                raise ValueError(f"its values ({file.mode}) have no known range; save it with 8 or 16 bits per channel")
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DamagedDataError(f"{path} cannot be read as a picture: {error}") from error


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Grey values 0..65535 as 0..255; Pillow itself would cut them off at 255."""
    return Image.fromarray(((np.asarray(picture).astype(np.uint32) + 128) // 257).astype(np.uint8))


def resize_and_crop(picture: Image.Image, resize: int, crop: int) -> Image.Image:
    """Scale the short side to ``resize``, antialiased bilinear, and cut a square of side ``crop`` from the middle."""
    short = min(picture.size)
    width, height = (resize * side // short for side in picture.size)
    left, top = (round((side - crop) / 2) for side in (width, height))
    right, bottom = left + crop, top + crop
    if max(width, height) > LONGEST * resize:
        across, down = picture.width / width, picture.height / height
        box = (left * across, top * down, right * across, bottom * down)
        return picture.resize((crop, crop), Image.Resampling.BILINEAR, box=box)
    if short != resize:
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return picture.crop((left, top, right, bottom))
