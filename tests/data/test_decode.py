"""Resizing and cropping against an obvious float64 reference."""

import numpy as np
import pytest
from PIL import Image

from grotta.data.decode import open_picture, read_picture, resize_and_crop, short_side


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


def test_the_usual_sizes():
    assert [short_side(size) for size in (224, 32, 96)] == [256, 37, 110]


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_every_kind_of_picture_becomes_rgb(tmp_path, mode):
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.new("RGB", (20, 20), (255, 255, 255)).convert(mode).save(path)
    assert read_picture(path, 16, 14).shape == (14, 14, 3)


def test_the_orientation_tag_counts_only_when_asked_for(tmp_path):
    picture = Image.new("RGB", (30, 20))
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(tmp_path / "a.jpg", exif=exif)
    assert open_picture(tmp_path / "a.jpg").size == (30, 20)
    assert open_picture(tmp_path / "a.jpg", upright=True).size == (20, 30)
