"""What the random corruptions draw: moments, ranges and shares, and the parts they are made of."""

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from skimage.util import random_noise

from grotta.data.corruptions import SCALES, Scale, corrupt, filters, find_corruption
from grotta.data.corruptions.frosting import PICTURES, frost_pictures
from grotta.data.corruptions.pixels import Images
from grotta.data.corruptions.plasma import plasma

CASES = [(scale, severity) for scale in SCALES for severity in range(1, 6)]


def grey(level: int, count: int = 20) -> Images:
    return np.full((count, 32, 32, 3), level, dtype=np.uint8)


def dots(count: int, size: int = 32) -> Images:
    result = np.zeros((count, size, size, 3), dtype=np.uint8)
    result[:, size // 2, size // 2] = 255
    return result


@pytest.mark.parametrize("severity", range(1, 6))
def test_gaussian_noise_has_mean_zero_and_the_given_deviation(severity: int) -> None:
    noise = corrupt(grey(127), "gaussian_noise", severity) / 255 - 127 / 255
    # Truncation lowers the mean by half a level.
    assert noise.mean() == pytest.approx(-0.5 / 255, abs=2e-3)
    assert noise.std() == pytest.approx(find_corruption("gaussian_noise").constants["cifar"][severity - 1], rel=0.02)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("level", [20, 127])
def test_shot_noise_has_the_mean_and_variance_of_photon_counts(level: int, severity: int) -> None:
    photons = find_corruption("shot_noise").constants["cifar"][severity - 1]
    values = corrupt(grey(level), "shot_noise", severity) / 255
    assert values.mean() == pytest.approx(level / 255, abs=3e-3)
    assert values.var() == pytest.approx(level / 255 / photons, rel=0.05)


@pytest.mark.parametrize(("scale", "severity"), CASES)
def test_impulse_noise_has_the_shares_of_scikit_image(scale: Scale, severity: int) -> None:
    amount = find_corruption("impulse_noise").constants[scale][severity - 1]
    own = corrupt(grey(100), "impulse_noise", severity, scale=scale)
    peer = np.uint8(255 * random_noise(grey(100) / 255, mode="s&p", amount=amount, rng=1))
    deviation = np.sqrt(amount / own.size)
    for value in (0, 255):
        assert (own == value).mean() == pytest.approx(amount / 2, abs=4 * deviation)
        assert (own == value).mean() == pytest.approx((peer == value).mean(), abs=6 * deviation)
    assert set(np.unique(own)) == {0, 100, 255}
    assert np.any(own.min(axis=-1) != own.max(axis=-1)), "each value is hit on its own, not each pixel"


def test_motion_blur_of_a_dot_is_what_imagemagick_makes_of_it() -> None:
    """Recorded from ImageMagick 6.9.11: radius 9, sigma 2.5, 30 degrees; (row, column) from the dot -> level."""
    expected = {
        (0, 0): 70,
        (0, -1): 64,
        (-1, -2): 50,
        (-1, -3): 34,
        (-2, -3): 19,
        (-2, -4): 9,
        (-3, -5): 3,
        (-3, -6): 1,
    }
    blurred = filters.motion_blur(dots(1), np.array([30.0]), 9, 2.5)[0]
    rows, columns = np.nonzero(blurred[..., 0])
    found = {(row - 16, column - 16): blurred[row, column, 0] for row, column in zip(rows, columns, strict=True)}
    assert found == expected


def directions(pictures: Images) -> npt.NDArray[np.float64]:
    """The angle from the dot in the middle to the centre of what is left of it, one a picture, in degrees."""
    weights = pictures[..., 0] / pictures[..., 0].sum(axis=(1, 2), keepdims=True)
    size = pictures.shape[1]
    rows, columns = np.mgrid[:size, :size] - size // 2
    return np.asarray(np.rad2deg(np.arctan2(-(weights * rows).sum(axis=(1, 2)), -(weights * columns).sum(axis=(1, 2)))))


def test_motion_blur_angles_are_spread_evenly_from_minus_45_to_45_degrees() -> None:
    angles = directions(corrupt(dots(1200, size=88), "motion_blur", 5, scale="imagenet"))
    assert np.abs(angles).max() < 47
    shares, _ = np.histogram(angles, bins=6, range=(-45, 45))
    assert shares / 1200 == pytest.approx([1 / 6] * 6, abs=0.035)


def test_glass_takes_each_of_its_offsets_equally_often() -> None:
    rows, columns = np.mgrid[:32, :32]
    places = np.stack([8 * rows, 8 * columns, 0 * rows], axis=-1).astype(np.uint8)
    # At severity 1 both Gaussians are so narrow that they change nothing.
    moved = corrupt(np.repeat(places[None], 50, axis=0), "glass_blur", 1)
    offsets = (moved[:, 2:, 2:, :2].astype(int) - places[2:, 2:, :2]) // 8
    kinds, counts = np.unique(offsets.reshape(-1, 2), axis=0, return_counts=True)
    assert kinds.tolist() == [[-1, -1], [-1, 0], [0, -1], [0, 0]]
    assert counts / counts.sum() == pytest.approx([0.25] * 4, abs=0.01)
    np.testing.assert_array_equal(moved[:, :2], np.broadcast_to(places[:2], (50, 2, 32, 3)))


def test_plasma_fills_zero_to_one_and_is_rougher_with_less_decay() -> None:
    roughness = []
    for decay in (3.0, 2.0, 1.4):
        land = plasma(np.random.default_rng(0).uniform(-1, 1, (200, 32 * 32 - 1)), decay)
        assert land.min(axis=(1, 2)).tolist() == [0.0] * 200
        assert land.max(axis=(1, 2)).tolist() == [1.0] * 200
        roughness.append(np.abs(np.diff(land, axis=2)).mean())
    assert roughness == sorted(roughness)


def test_plasma_has_no_seam() -> None:
    land = plasma(np.random.default_rng(0).uniform(-1, 1, (500, 32 * 32 - 1)), 2.0)
    across_the_seam = np.abs(land[:, :, 0] - land[:, :, -1]).mean()
    inside = np.abs(land[:, :, 16] - land[:, :, 15]).mean()
    assert across_the_seam == pytest.approx(inside, rel=0.05)


def test_the_five_frost_pictures_shrink_as_plain_bilinear_reading_does() -> None:
    full, small = frost_pictures((32, 32), 1), frost_pictures((32, 32), 5)
    assert len(PICTURES) == len(full) == len(small) == 5
    for large, little in zip(full, small, strict=True):
        assert little.shape[:2] == (large.shape[0] // 5, large.shape[1] // 5)
        height, width = little.shape[:2]
        reading = Image.Transform.AFFINE, (5, 0, 0, 0, 5, 0), Image.Resampling.BILINEAR
        np.testing.assert_array_equal(little, np.asarray(Image.fromarray(large).transform((width, height), *reading)))


def test_frost_on_black_is_a_dimmed_crop_of_a_frost_picture() -> None:
    crops = corrupt(np.zeros((50, 32, 32, 3), dtype=np.uint8), "frost", 5)
    brightness = crops.mean(axis=(1, 2, 3)) / 0.45
    assert 60 < brightness.min() < 130
    assert 180 < brightness.max() < 255
