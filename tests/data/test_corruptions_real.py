"""Root mean square distance to the clean pictures, 0..255, on real data, found through GROTTA_DATA and the cache.

The tables hold what the published generator gives (its own code, with OpenCV, SciPy, ImageMagick and the original frost
pictures): for the random kinds the mean of several runs.
"""

import numpy as np
import pytest
from PIL import Image

from grotta.data import DataNotFoundError, load_clean
from grotta.data.corruptions import CORRUPTIONS, Scale, corrupt
from grotta.data.corruptions.pixels import Images
from grotta.data.roots import data_roots

pytestmark = pytest.mark.real

# The first 200 CIFAR-10 test pictures, severity 1..5.
CIFAR = {
    "motion_blur": (11.52, 16.89, 20.78, 20.69, 24.02),
    "snow": (13.46, 26.74, 30.58, 41.5, 55.94),
    "fog": (13.27, 26.64, 34.29, 40.3, 48.45),
    "shot_noise": (7.78, 10.93, 17.03, 19.6, 23.77),
    "defocus_blur": (2.06, 5.06, 7.64, 10.0, 14.14),
    "contrast": (13.69, 27.36, 32.83, 38.3, 46.5),
    "zoom_blur": (14.61, 17.1, 20.17, 23.17, 25.93),
    "brightness": (10.39, 21.14, 31.52, 41.46, 59.68),
    "frost": (32.38, 47.75, 53.46, 50.36, 49.99),
    "elastic_transform": (35.71, 32.96, 29.95, 27.35, 22.88),
    "glass_blur": (22.46, 22.16, 20.42, 32.16, 29.99),
    "gaussian_noise": (10.06, 14.97, 19.76, 22.22, 24.53),
    "pixelate": (6.16, 8.32, 9.64, 11.86, 14.26),
    "jpeg_compression": (7.47, 9.22, 9.8, 10.41, 11.21),
    "impulse_noise": (14.45, 20.42, 24.93, 32.08, 37.75),
}
# The centres (224 pixels) of the first 50 ImageNet validation pictures of `imagenet-val-1k`, severity 1..5.
IMAGENET = {
    "motion_blur": (18.28, 22.63, 26.54, 29.99, 31.94),
    "snow": (45.1, 71.92, 72.26, 86.94, 99.4),
    "fog": (49.45, 54.22, 60.49, 59.72, 61.94),
    "shot_noise": (21.35, 32.29, 44.96, 65.03, 79.62),
    "defocus_blur": (16.93, 18.89, 22.03, 24.17, 26.01),
    "contrast": (30.94, 36.09, 41.25, 46.4, 48.98),
    "zoom_blur": (23.87, 26.82, 27.88, 29.79, 30.97),
    "brightness": (20.66, 40.61, 58.66, 74.5, 87.12),
    "frost": (63.92, 78.4, 87.14, 83.48, 84.89),
    "elastic_transform": (48.61, 57.59, 30.92, 31.48, 32.4),
    "glass_blur": (18.77, 18.42, 25.09, 23.89, 25.2),
    "gaussian_noise": (19.67, 28.99, 42.11, 57.55, 75.85),
    "pixelate": (11.81, 12.96, 15.41, 17.66, 18.95),
    "jpeg_compression": (11.06, 12.24, 13.0, 14.89, 16.95),
    "impulse_noise": (24.92, 35.34, 43.23, 59.42, 74.83),
}
# Independently given for CIFAR-10 at severity 5.
POINTS = {
    "contrast": 46.5,
    "brightness": 59.7,
    "gaussian_noise": 24.5,
    "motion_blur": 24.0,
    "snow": 55.0,
    "fog": 48.1,
}
LOOSE = {"motion_blur", "snow", "fog", "frost", "elastic_transform", "glass_blur"}


@pytest.fixture(scope="module")
def cifar() -> Images:
    # Set up before the cache of the tests, so that CIFAR-10 is found in the user's own too.
    try:
        images, _ = load_clean("cifar10", download=False)
    except DataNotFoundError as error:
        pytest.skip(str(error))
    return images[:200].permute(0, 2, 3, 1).numpy()


@pytest.fixture(scope="module")
def imagenet() -> Images:
    folders = [root / "imagenet-val-1k" for root in data_roots() if (root / "imagenet-val-1k").is_dir()]
    if not folders:
        pytest.skip("no imagenet-val-1k under GROTTA_DATA")
    paths = [folders[0] / f"{number:04d}.jpg" for number in range(50)]
    return np.stack([np.asarray(Image.open(path).convert("RGB"))[16:240, 16:240] for path in paths])


def distance(clean: Images, name: str, severity: int, scale: Scale) -> float:
    difference = corrupt(clean, name, severity, scale=scale).astype(np.float64) - clean
    return float(np.sqrt(np.mean(difference**2)))


def tolerance(name: str) -> float:
    return 0.15 if name in LOOSE else 0.05


@pytest.mark.parametrize("name", POINTS)
def test_the_given_points_are_met(name: str, cifar: Images) -> None:
    assert distance(cifar, name, 5, "cifar") == pytest.approx(POINTS[name], rel=tolerance(name))


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_cifar_distances_are_the_published_generators(name: str, severity: int, cifar: Images) -> None:
    assert distance(cifar, name, severity, "cifar") == pytest.approx(CIFAR[name][severity - 1], rel=tolerance(name))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_imagenet_distances_are_the_published_generators(name: str, imagenet: Images) -> None:
    for severity in range(1, 6):
        expected = pytest.approx(IMAGENET[name][severity - 1], rel=tolerance(name))
        assert distance(imagenet, name, severity, "imagenet") == expected
