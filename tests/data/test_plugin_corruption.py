"""A corruption of another package: the recipe of CONTRIBUTING, followed, and what it leaves as it was."""

import hashlib
import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import grotta.data
from grotta.data import CORRUPTIONS, corrupt, list_corruptions, regenerate
from grotta.data.corruptions import registry

# sha256 over severities 1 to 5 of three pictures, made by the code of the first release.
RELEASED = json.loads("""
{
"motion_blur cifar": "eb0582e21f78b87c",
"snow cifar": "73841169e792d84f",
"fog cifar": "87752721dc023d63",
"shot_noise cifar": "a7a35b72470557a3",
"defocus_blur cifar": "23290b62f115aa04",
"contrast cifar": "90d36bdb9e85bb5b",
"zoom_blur cifar": "872e094e88314399",
"brightness cifar": "93fdb857336eb62f",
"frost cifar": "8af0ac39f2af4840",
"elastic_transform cifar": "fd29f599b5efe2d9",
"glass_blur cifar": "0bf2726f74248a80",
"gaussian_noise cifar": "7be7f40be94854f4",
"pixelate cifar": "4459254ba0b7a536",
"jpeg_compression cifar": "e6c675fd490fda17",
"impulse_noise cifar": "68ed59acf9be7799",
"motion_blur imagenet": "2ad93eac3f500a13",
"snow imagenet": "cd01a5540016dfae",
"fog imagenet": "102f7c8cd2e28472",
"shot_noise imagenet": "b1c49d880e7607d5",
"defocus_blur imagenet": "db469535bd5323f0",
"contrast imagenet": "7f940e9bc76c75ea",
"zoom_blur imagenet": "d01c12996703615b",
"brightness imagenet": "8341fa15bf8289a0",
"frost imagenet": "be88ebe6df3fc99e",
"elastic_transform imagenet": "c1039e557e5e0b87",
"glass_blur imagenet": "9a1162e51e3387e5",
"gaussian_noise imagenet": "0be4cd120f426897",
"pixelate imagenet": "794cca45fa971c33",
"jpeg_compression imagenet": "e8dd639b74a564fe",
"impulse_noise imagenet": "8948e1367030b60c"
}
""")

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULE = GUIDE.partition("## Add a corruption")[2].partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def stripes(tmp_path, monkeypatch):
    """The corruption ``stripes``, registered in this process for the time of a test."""
    (tmp_path / "stripes_for_grotta.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_CORRUPTIONS", dict(registry._CORRUPTIONS))
    importlib.import_module("stripes_for_grotta")
    yield "stripes"
    del sys.modules["stripes_for_grotta"]
    regenerate.version_of.cache_clear()


def clean_pictures():
    rng = np.random.default_rng(5)
    for scale, side in (("cifar", 32), ("imagenet", 72)):
        clean = rng.integers(0, 256, (3, side, side, 3)).astype(np.uint8)
        clean[1] = 90
        clean[:, 4:14, 8:20] = 200
        yield scale, clean


@pytest.mark.parametrize(("scale", "clean"), list(clean_pictures()), ids=["cifar", "imagenet"])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_fifteen_make_the_bytes_of_the_first_release(scale, clean, name, stripes):
    digest = hashlib.sha256()
    for severity in range(1, 6):
        digest.update(corrupt(clean, name, severity, scale=scale, seed=11, first_index=7).tobytes())
    assert digest.hexdigest()[:16] == RELEASED[f"{name} {scale}"]


def test_code_that_makes_the_bytes_of_the_first_release_keeps_its_version():
    """If this fails alone, the bytes are the same: enter the new digest in ``regenerate._SAME_PICTURES``."""
    assert regenerate.generator_version() == "305fabe75da9"


def test_a_sixteenth_is_applied_seeded_and_listed_after_the_fifteen(stripes):
    assert list_corruptions() == [*CORRUPTIONS, "blank", "clean", "noise", "stripes"]
    clean = np.full((64, 8, 8, 3), 100, np.uint8)
    made = corrupt(clean, "stripes", 3, seed=1)
    assert {tuple(picture[:, 0, 0]) for picture in made} == {(25, 100) * 4, (100, 25) * 4}
    np.testing.assert_array_equal(corrupt(clean[9:], "stripes", 3, seed=1, first_index=9), made[9:])
    assert not np.array_equal(corrupt(clean, "stripes", 3, seed=2), made)


def test_a_sixteenth_leaves_complete_published_folders_complete(stripes, tmp_path):
    (tmp_path / "CIFAR-10-C").mkdir()
    for name in CORRUPTIONS:
        np.save(tmp_path / "CIFAR-10-C" / f"{name}.npy", np.zeros((10, 32, 32, 3), np.uint8))
    np.save(tmp_path / "CIFAR-10-C" / "labels.npy", np.arange(10))
    data = grotta.data.load("cifar10-c", root=tmp_path)
    assert (data.provenance, data.domains) == ("published", CORRUPTIONS)


def test_a_sixteenth_is_a_domain_like_the_others_and_an_edited_one_is_made_again(stripes, tmp_path):
    data = grotta.data.load("fashion-c", domains=["fog", "stripes"])
    clean = grotta.data.load_clean("fashion")[0][:5].permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(data.images("stripes", range(5)).permute(0, 2, 3, 1), corrupt(clean, "stripes"))
    before = data.identity("stripes"), data.identity("fog")
    (tmp_path / "stripes_for_grotta.py").write_text(MODULE + "\n# edited\n")
    regenerate.version_of.cache_clear()
    assert data.identity("stripes") != before[0]
    assert data.identity("fog") == before[1]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("images / 2", r"corruption 'broken' must return uint8 pictures \(1, 8, 8, 3\), got float64"),
        ("images[:, 1:]", r"must return uint8 pictures \(1, 8, 8, 3\), got uint8 \(1, 7, 8, 3\)"),
        ("None", "must return uint8 pictures .*, got NoneType"),
    ],
)
def test_a_corruption_that_returns_something_else_is_named(made, message, monkeypatch):
    monkeypatch.setattr(registry, "_CORRUPTIONS", dict(registry._CORRUPTIONS))
    registry.corruption("broken", cifar=range(5), imagenet=range(5))(eval(f"lambda images, constants: {made}"))
    with pytest.raises(ValueError, match=message):
        corrupt(np.zeros((1, 8, 8, 3), np.uint8), "broken")


def test_a_name_is_registered_once_and_with_five_severities():
    with pytest.raises(ValueError, match=r"name must be new, got 'fog', which grotta\.data\.corruptions\.weather"):
        registry.corruption("fog", cifar=range(5), imagenet=range(5))(lambda images, constants: images)
    with pytest.raises(ValueError, match="imagenet must hold constants for 5 severities, got 3"):
        registry.corruption("new", cifar=range(5), imagenet=range(3))


def test_an_installed_package_brings_its_corruption_to_every_process(tmp_path):
    (tmp_path / "stripes_for_grotta.py").write_text(MODULE)
    info = tmp_path / "stripes_for_grotta-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stripes-for-grotta\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[grotta.corruptions]\nstripes = stripes_for_grotta\n")
    script = textwrap.dedent("""
        import sys, numpy as np
        sys.path.insert(0, sys.argv[1])
        from grotta.data import corrupt, list_corruptions
        print(corrupt(np.full((1, 8, 8, 3), 120, np.uint8), "stripes", 1).mean(), list_corruptions()[-1])
    """)
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("90.0 stripes\n", "")
