"""Resizing and cropping against an obvious float64 reference."""

import numpy as np
import pytest
from PIL import Image

from grotta.data import DamagedDataError, decode
from grotta.data.decode import open_picture, resize_and_crop, short_side


def triangle_matrix(size_in: int, size_out: int) -> np.ndarray:
    """Antialiased bilinear resampling of a line, as a matrix (size_out, size_in), weight by weight."""
    matrix = np.zeros((size_out, size_in))
    scale = max(size_in / size_out, 1.0)
    for target in range(size_out):
        centre = (target + 0.5) * size_in / size_out
        for source in range(size_in):
            matrix[target, source] = max(0.0, 1 - abs(source + 0.5 - centre) / scale)
        matrix[target] /= matrix[target].sum()
    return matrix


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (17, 61), (300, 200), (64, 64)])
def test_the_short_side_is_scaled_bilinearly_and_the_middle_cut_out(size):
    width, height = size
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    shown = np.asarray(resize_and_crop(Image.fromarray(pixels), 64, 56))
    scaled_width, scaled_height = int(64 * width / min(size)), int(64 * height / min(size))
    rows, columns = triangle_matrix(height, scaled_height), triangle_matrix(width, scaled_width)
    scaled = np.stack([rows @ pixels[..., channel] @ columns.T for channel in range(3)], axis=2)
    top, left = round((scaled_height - 56) / 2.0), round((scaled_width - 56) / 2.0)
    expected = scaled[top : top + 56, left : left + 56]
    assert shown.shape == (56, 56, 3)
    # Two passes, each rounded to whole grey values.
    assert np.abs(shown - expected).max() <= 1.01


def test_a_picture_of_the_right_size_is_not_touched():
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(resize_and_crop(Image.fromarray(pixels), 32, 32)), pixels)


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (17, 61), (300, 200), (64, 64), (1000, 60)])
def test_scaling_only_the_middle_is_the_same_up_to_rounding(size, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    whole, middle = [], []
    for limit, results in ((10**6, whole), (0, middle)):
        monkeypatch.setattr(decode, "LONGEST", limit)
        for resize, crop in ((64, 56), (32, 32)):
            results.append(np.asarray(resize_and_crop(Image.fromarray(pixels), resize, crop)).astype(int))
    assert all(np.abs(a - b).max() <= 1 for a, b in zip(whole, middle))


@pytest.mark.parametrize("upright", [False, True])
def test_of_a_line_only_the_middle_is_scaled(upright):
    line = np.random.default_rng(0).integers(0, 256, (1, 40_000, 3), dtype=np.uint8)
    shown = np.asarray(resize_and_crop(Image.fromarray(line.swapaxes(0, 1) if upright else line), 256, 224))
    # Its short side of 1 becomes 256, so that 224 columns show the middle 7/8 of a pixel.
    places = 20_000 - 0.5 + (np.arange(224) + 0.5 - 112) / 256
    expected = np.stack([np.interp(places, np.arange(40_000), line[0, :, channel]) for channel in range(3)], axis=1)
    assert np.abs((shown.swapaxes(0, 1) if upright else shown) - expected).max() <= 1


def test_the_usual_sizes():
    assert [short_side(size) for size in (224, 32, 96)] == [256, 37, 110]


GREYS = np.arange(256, dtype=np.uint8).reshape(16, 16)


@pytest.mark.parametrize(
    ("mode", "file"),
    [
        ("L", "a.png"),
        ("LA", "a.png"),
        ("P", "a.png"),
        ("RGB", "a.png"),
        ("RGBA", "a.png"),
        ("RGBX", "a.tif"),
        ("CMYK", "a.tif"),
        ("1", "a.png"),
    ],
)
def test_every_kind_of_picture_becomes_the_rgb_it_shows(tmp_path, mode, file):
    Image.fromarray(GREYS).convert(mode, dither=Image.Dither.NONE).save(tmp_path / file)
    shown = np.asarray(open_picture(tmp_path / file))
    expected = np.where(GREYS >= 128, 255, 0) if mode == "1" else GREYS
    assert np.array_equal(shown, np.stack([expected] * 3, axis=2))


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("file", ["a.png", "a.tif", "big_endian.tif", "a.ppm"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, file, upright):
    deep = (GREYS.astype(np.uint16) * 257 + np.arange(16, dtype=np.uint16) * 16 - 120).clip(0, 65535)
    deep[0, 0], deep[-1, -1] = 0, 65535
    if file == "a.ppm":
        (tmp_path / file).write_bytes(b"P5 16 16 65535\n" + deep.astype(">u2").tobytes())
    else:
        Image.fromarray(deep.astype(">u2" if file == "big_endian.tif" else "<u2")).save(tmp_path / file)
    expected = np.rint(deep / 257)
    assert np.array_equal(np.asarray(open_picture(tmp_path / file, upright=upright)), np.stack([expected] * 3, axis=2))


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_values_without_a_known_range_are_refused(tmp_path, dtype):
    Image.fromarray(GREYS.astype(dtype)).save(tmp_path / "a.tif")
    with pytest.raises(
        DamagedDataError, match=r"a\.tif cannot be read as a picture: its values \([IF]\) have no known range"
    ):
        open_picture(tmp_path / "a.tif")


def test_the_orientation_tag_counts_only_when_asked_for(tmp_path):
    picture = Image.new("RGB", (30, 20))
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(tmp_path / "a.jpg", exif=exif)
    assert open_picture(tmp_path / "a.jpg").size == (30, 20)
    assert open_picture(tmp_path / "a.jpg", upright=True).size == (20, 30)
