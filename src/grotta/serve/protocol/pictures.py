"""JPEG and PNG bodies, for people with curl."""

import io
import warnings

import numpy as np
from PIL import Image, UnidentifiedImageError

from grotta.serve.errors import Refused, bad
from grotta.serve.limits import Limits
from grotta.serve.protocol.tensors import Array

MEDIA_TYPES = {"image/jpeg": "JPEG", "image/png": "PNG"}


def decode_picture(body: bytes, media_type: str, shape: tuple[int, ...], limits: Limits) -> Array:
    """One picture as uint8 (1, 3, H, W): short side to the model's size, then the middle of it.

    The size in the file's header is checked before a pixel is decoded.
    """
    channels, height, width = shape
    if channels != 3:
        raise Refused(415, f"pictures need a model of three channels, this one has {channels}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large pictures; our own limit decides
            with Image.open(io.BytesIO(body), formats=[MEDIA_TYPES[media_type]]) as picture:
                if picture.width * picture.height > limits.pixels:
                    size = f"{picture.width} x {picture.height}"
                    raise Refused(413, f"a picture may have at most {limits.pixels} pixels, got {size}")
                picture.draft("RGB", (2 * width, 2 * height))
                fitted = _fit(picture.convert("RGB"), height, width)
    except UnidentifiedImageError:
        raise bad(f"the body is not a complete {MEDIA_TYPES[media_type]} picture: it does not begin like one") from None
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise bad(f"the body is not a complete {MEDIA_TYPES[media_type]} picture: {str(error)[:120]}") from error
    return np.ascontiguousarray(np.asarray(fitted).transpose(2, 0, 1))[None]


def _fit(picture: Image.Image, height: int, width: int) -> Image.Image:
    scale = max(width / picture.width, height / picture.height)
    size = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return picture.crop((left, top, left + width, top + height))
