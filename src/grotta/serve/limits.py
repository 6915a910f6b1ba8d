"""How large a request may be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Upper bounds that are checked before anything is decoded.

    >>> Limits(images=64).images
    64
    """

    body_bytes: int = 64 << 20  # of a request, also after decompression
    images: int = 1024  # in one request
    pixels: int = 32_000_000  # of a JPEG or PNG picture: 32 megapixels
    name_length: int = 128  # characters in a stream's name
    parameters: int = 64  # entries in a request's "parameters"
