"""Each corruption against a slow reference, one picture at a time, built on SciPy, scikit-image or Pillow.

A random corruption's reference gets a generator in the same state and draws in the same order.
"""

import io
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy import ndimage
from skimage import color, filters, transform

from grotta.data.corruptions import CORRUPTIONS, SCALES, Scale, corrupt, find_corruption
from grotta.data.corruptions.apply import generator_for
from grotta.data.corruptions.frosting import frost_pictures
from grotta.data.corruptions.pixels import Images

Array = npt.NDArray[np.float64]
Rng = np.random.Generator
SEVERITIES = range(1, 6)
CASES = [(scale, severity) for scale in SCALES for severity in SEVERITIES]
SIZES: dict[Scale, int] = {"cifar": 32, "imagenet": 64}


def pictures(size: int, count: int = 2) -> Images:
    """Coloured clouds that reach black and white, and a flat patch."""
    rng = np.random.default_rng(size)
    clouds = ndimage.gaussian_filter(rng.normal(size=(count, size, size, 3)), (0, 1.5, 1.5, 0.5), mode="wrap")
    result = np.asarray(np.clip(128 + 900 * clouds, 0, 255), dtype=np.uint8)
    result[:, 2:9, 3:12] = rng.integers(0, 256, (count, 1, 1, 3))
    return result


def both(name: str, scale: Scale, severity: int, reference: Callable[..., Array], random: bool) -> tuple[Images, Array]:
    """The corrupted pictures, and the reference's values on 0..255 before truncation."""
    clean = pictures(SIZES[scale])
    constants = find_corruption(name).constants[scale][severity - 1]
    constants = constants if isinstance(constants, tuple) else (constants,)
    values = []
    for number, image in enumerate(clean):
        key = (3, SCALES.index(scale), CORRUPTIONS.index(name), severity)
        rng = (generator_for(key, number),) if random else ()
        values.append(reference(image, *rng, *constants))
    return corrupt(clean, name, severity, scale=scale, seed=3), 255 * np.clip(np.stack(values), 0, 1)


def assert_truncated(own: Images, values: Array, slack: float = 1e-4) -> None:
    """The bytes are the values truncated; only a value this near a whole number may fall on either side."""
    assert np.all(own >= np.floor(values - slack))
    assert np.all(own <= np.floor(values + slack))


def gaussian_noise(image: Images, rng: Rng, sigma: float) -> Array:
    return image / 255 + sigma * rng.standard_normal(image.shape)


def shot_noise(image: Images, rng: Rng, photons: float) -> Array:
    counts = [rng.poisson(value / 255 * photons) for value in image.ravel()]
    return np.reshape(counts, image.shape) / photons


def impulse_noise(image: Images, rng: Rng, amount: float) -> Array:
    lots = rng.random(image.shape)
    return np.select([lots < amount / 2, lots < amount], [1.0, 0.0], image / 255)


def defocus_blur(image: Images, radius: float, sigma: float) -> Array:
    reach, size = (8, 3) if radius <= 8 else (int(radius), 5)
    disk = np.array(
        [[i**2 + j**2 <= radius**2 for i in range(-reach, reach + 1)] for j in range(-reach, reach + 1)], dtype=float
    )
    line = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    kernel = ndimage.correlate(disk / disk.sum(), np.outer(line, line) / line.sum() ** 2, mode="mirror")
    return ndimage.correlate(image / 255, kernel[:, :, None], mode="mirror")


def glass_blur(image: Images, rng: Rng, sigma: float, reach: int, rounds: int) -> Array:
    size = len(image)
    shaken = np.uint8(filters.gaussian(image / 255, sigma, channel_axis=-1) * 255)
    offsets = rng.integers(-reach, reach, size=(rounds, 2, size - 2 * reach, size - 2 * reach))
    for down, across in offsets:
        for row in range(size - reach, reach, -1):
            for column in range(size - reach, reach, -1):
                place = row - reach - 1, column - reach - 1
                shaken[row, column] = shaken[row + down[place], column + across[place]]
    return np.asarray(filters.gaussian(shaken / 255, sigma, channel_axis=-1))


def smear(values: Array, degrees: float, radius: int, sigma: float) -> Array:
    """Motion blur as a dense kernel; whole 65535ths, as ImageMagick's pixels."""
    reach = 2 * radius
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    for i in range(reach + 1):
        row = math.ceil(i * math.sin(math.radians(degrees)) - 0.5)
        column = math.ceil(i * math.cos(math.radians(degrees)) - 0.5)
        kernel[reach + row, reach + column] += math.exp(-(i**2) / (2 * sigma**2))
    blurred = ndimage.correlate(values, kernel[:, :, None] / kernel.sum(), mode="nearest")
    return np.asarray(np.round(blurred * 65535) / 65535)


def motion_blur(image: Images, rng: Rng, radius: int, sigma: float) -> Array:
    return smear(image / 255, rng.uniform(-45, 45), radius, sigma)


def centre_zoom(values: Array, factor: float) -> Array:
    size = len(values)
    crop = math.ceil(size / factor)
    start = (size - crop) // 2
    large = ndimage.zoom(values[start : start + crop, start : start + crop], (factor, factor, 1), order=1)
    start = (len(large) - size) // 2
    return np.asarray(large[start : start + size, start : start + size])


def zoom_blur(image: Images, end: float, step: float) -> Array:
    values = image / 255
    return np.mean([values, *(centre_zoom(values, factor) for factor in np.arange(1, end, step))], axis=0)


def snow(
    image: Images,
    rng: Rng,
    mean: float,
    deviation: float,
    zoom: float,
    low: float,
    radius: int,
    sigma: float,
    share: float,
) -> Array:
    layer = centre_zoom(rng.normal(mean, deviation, size=image.shape[:2])[..., None], zoom)
    layer = np.where(layer < low, 0, np.clip(layer, 0, 1))
    layer = smear(np.floor(layer * 255) / 255, rng.uniform(-135, -45), radius, sigma)
    layer = np.floor(layer * 255 + 1e-6) / 255
    values = image / 255
    grey = (0.299 * values[..., 0] + 0.587 * values[..., 1] + 0.114 * values[..., 2])[..., None]
    whitened = share * values + (1 - share) * np.maximum(values, 1.5 * grey + 0.5)
    return np.asarray(whitened + layer + np.rot90(layer, 2))


def diamond_square(draws: Array, side: int, decay: float) -> Array:
    """The plasma fractal point by point on a torus."""
    land, drawn, step, wibble = np.zeros((side, side)), iter(draws), side, 100.0
    while step > 1:
        half = step // 2
        diagonal = [(-half, -half), (-half, half), (half, -half), (half, half)]
        straight = [(-half, 0), (half, 0), (0, -half), (0, half)]
        for first_row, first_column, neighbours in ((half, half, diagonal), (0, half, straight), (half, 0, straight)):
            for row in range(first_row, side, step):
                for column in range(first_column, side, step):
                    around = [land[(row + i) % side, (column + j) % side] for i, j in neighbours]
                    land[row, column] = np.mean(around) + wibble**2 * next(drawn)
        step, wibble = half, wibble / decay
    return np.asarray((land - land.min()) / (land.max() - land.min()))


def fog(image: Images, rng: Rng, strength: float, decay: float) -> Array:
    size = len(image)
    plasma = diamond_square(rng.uniform(-1, 1, size=size * size - 1), size, decay)
    brightest = image.max() / 255
    return np.asarray((image / 255 + strength * plasma[..., None]) * brightest / (brightest + strength))


def frost(image: Images, rng: Rng, share: float, strength: float, shrink: int) -> Array:
    size = len(image)
    pictures = frost_pictures((size, size), shrink)
    picture = pictures[rng.integers(5)]
    top, left = rng.integers(picture.shape[0] - size), rng.integers(picture.shape[1] - size)
    return (share * image + strength * picture[top : top + size, left : left + size]) / 255


def brightness(image: Images, shift: float) -> Array:
    hsv = color.rgb2hsv(image / 255)
    hsv[..., 2] = np.clip(hsv[..., 2] + shift, 0, 1)
    return np.asarray(color.hsv2rgb(hsv))


def contrast(image: Images, factor: float) -> Array:
    mean = np.array([np.mean([value / 255 for value in image[..., channel].ravel()]) for channel in range(3)])
    return (image / 255 - mean) * factor + mean


def elastic_transform(image: Images, rng: Rng, amplitude: float, sigma: float, shift: float) -> Array:
    size = len(image)
    middle, half = size // 2, size // 3
    corners = middle + half * np.array([[1, 1], [1, -1], [-1, -1]])
    move = transform.AffineTransform.from_estimate(corners, corners + rng.uniform(-shift, shift, size=(3, 2)))
    pushes = rng.uniform(-1, 1, size=(2, size, size))
    grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), axis=-1).reshape(-1, 2)
    places = move.inverse(grid).reshape(size, size, 2)
    values = sample(image / 255, places[..., 1], places[..., 0], "mirror")
    if amplitude == 0:
        return values
    across, down = (amplitude * filters.gaussian(push, sigma, mode="reflect", truncate=3) for push in pushes)
    rows, columns = np.mgrid[:size, :size]
    return sample(values, rows + down, columns + across, "reflect")


def sample(values: Array, rows: Array, columns: Array, mode: str) -> Array:
    planes = [ndimage.map_coordinates(values[..., i], (rows, columns), order=1, mode=mode) for i in range(3)]
    return np.stack(planes, axis=-1)


def box_resize(values: Array, size: int) -> Array:
    """Mean of the pixels whose centres fall into each new pixel, or the nearest one; columns, then rows, in 8 bits."""
    for _ in range(2):
        ratio = values.shape[1] / size
        width = max(ratio, 1)
        centres = np.arange(values.shape[1]) + 0.5
        columns = []
        for i in range(size):
            inside = np.abs(centres - (i + 0.5) * ratio) < width / 2
            columns.append(np.floor(values[:, inside].mean(axis=1) + 0.5))
        values = np.stack(columns, axis=1).swapaxes(0, 1)
    return values


def pixelate(image: Images, share: float) -> Array:
    return box_resize(box_resize(image.astype(float), int(len(image) * share)), len(image)) / 255


def jpeg_compression(image: Images, quality: int) -> Array:
    file = io.BytesIO()
    Image.fromarray(image).save(file, format="jpeg", quality=quality)
    return np.asarray(Image.open(file)) / 255


@pytest.mark.parametrize(("scale", "severity"), CASES)
@pytest.mark.parametrize(
    "reference", [defocus_blur, contrast, zoom_blur, brightness, pixelate, jpeg_compression], ids=lambda f: f.__name__
)
def test_a_formula_equals_its_reference(reference: Callable[..., Array], scale: Scale, severity: int) -> None:
    own, values = both(reference.__name__, scale, severity, reference, random=False)
    assert_truncated(own, values)


@pytest.mark.parametrize(("scale", "severity"), CASES)
@pytest.mark.parametrize(
    "reference",
    [gaussian_noise, shot_noise, impulse_noise, glass_blur, motion_blur, snow, frost, fog, elastic_transform],
    ids=lambda f: f.__name__,
)
def test_from_the_same_draws_a_random_corruption_equals_its_reference(
    reference: Callable[..., Array], scale: Scale, severity: int
) -> None:
    own, values = both(reference.__name__, scale, severity, reference, random=True)
    # A sum half-way between two 16-bit values may be rounded to either.
    assert_truncated(own, values, slack=0.004 if reference is motion_blur else 1e-4)
