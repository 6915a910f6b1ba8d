"""JPEG and PNG bodies."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from grotta.serve.errors import Refused
from grotta.serve.limits import Limits
from grotta.serve.protocol.pictures import decode_picture


def encoded(pixels, form="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form)
    return buffer.getvalue()


def test_a_picture_of_the_models_size_is_taken_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    images = decode_picture(encoded(pixels), "image/png", (3, 32, 32), Limits())
    assert np.array_equal(images[0].transpose(1, 2, 0), pixels)


def test_other_sizes_are_scaled_by_the_short_side_and_cut_in_the_middle():
    wide = np.zeros((64, 200, 3), np.uint8)
    wide[:, 68:132] = 255  # the middle square
    images = decode_picture(encoded(wide), "image/png", (3, 32, 32), Limits())
    assert images.shape == (1, 3, 32, 32)
    assert images[0, :, :, 2:-2].min() > 200


def test_grey_and_transparent_pictures_become_colour():
    for shape in ((40, 40), (40, 40, 4)):
        assert decode_picture(encoded(np.full(shape, 7, np.uint8)), "image/png", (3, 32, 32), Limits()).shape[1] == 3


def png_that_claims(width, height):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


@pytest.mark.parametrize("side", [6000, 100_000, 2**31 - 1])
def test_a_decompression_bomb_is_refused_by_its_header(side):
    with pytest.raises(Refused) as caught:
        decode_picture(png_that_claims(side, side), "image/png", (3, 32, 32), Limits())
    assert caught.value.status in (400, 413)


@pytest.mark.parametrize("media_type", ["image/png", "image/jpeg"])
def test_what_is_no_picture_is_refused(media_type):
    whole = encoded(np.zeros((32, 32, 3), np.uint8), "PNG" if media_type == "image/png" else "JPEG")
    other = encoded(np.zeros((32, 32, 3), np.uint8), "GIF")
    for body in (b"", b"hello", whole[: len(whole) // 2], other):
        with pytest.raises(Refused, match="not a complete"):
            decode_picture(body, media_type, (3, 32, 32), Limits())
