"""Corrupting a folder of pictures into the layout of ImageNet-C."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grotta.data import CORRUPTIONS, DamagedDataError, DataNotFoundError, corrupt
from grotta.data.corrupt_folder import Corruptor, corrupt_folder
from grotta.data.decode import open_picture

FOG = Corruptor(corruptions=["fog"], keep_size=True)


@pytest.fixture
def source(tmp_path, make_picture):
    make_picture(tmp_path / "photos" / "dog" / "a.png", 1, (40, 30))
    make_picture(tmp_path / "photos" / "dog" / "b.JPG", 2, (30, 40))
    make_picture(tmp_path / "photos" / "cat" / "a.jpeg", 3, (50, 50))
    return tmp_path / "photos"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pictures(folder: Path) -> list[str]:
    return sorted(name for name in contents(folder) if name.endswith(".JPEG"))


def test_every_picture_is_written_in_the_published_layout(source, tmp_path):
    outcome = corrupt_folder(source, tmp_path / "out", Corruptor(corruptions=["fog", "contrast"], severities=[1, 5]))
    files = [
        f"{name}/{severity}/{path}.JPEG"
        for name in ("contrast", "fog")
        for severity in (1, 5)
        for path in ("cat/a", "dog/a", "dog/b")
    ]
    assert pictures(tmp_path / "out") == files
    assert (outcome.made, outcome.kept, outcome.damaged) == (12, 0, ())
    assert all(open_picture(tmp_path / "out" / name).size == (224, 224) for name in files)


def test_the_originals_are_not_touched(source, tmp_path):
    before = contents(source)
    corrupt_folder(source, tmp_path / "out", FOG)
    assert contents(source) == before


def test_the_pixels_are_those_of_corrupt(source, tmp_path):
    corrupt_folder(source, tmp_path / "out", Corruptor(corruptions=["gaussian_noise"], seed=5, keep_size=True))
    number = int.from_bytes(hashlib.sha256(b"dog/a.png").digest()[:4], "big")
    clean = np.asarray(open_picture(source / "dog" / "a.png"))[None]
    expected = corrupt(clean, "gaussian_noise", 5, scale="imagenet", seed=5, first_index=number)[0]
    Image.fromarray(expected).save(tmp_path / "expected.jpg", quality=85)
    written = open_picture(tmp_path / "out" / "gaussian_noise" / "5" / "dog" / "a.JPEG")
    assert np.array_equal(np.asarray(written), np.asarray(open_picture(tmp_path / "expected.jpg")))


def test_a_second_run_makes_only_what_is_missing(source, tmp_path, make_picture):
    corrupt_folder(source, tmp_path / "out", FOG)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "fog" / "5" / "dog" / "a.JPEG").unlink()
    make_picture(source / "ant.png", 9)
    outcome = corrupt_folder(source, tmp_path / "out", FOG)
    assert (outcome.made, outcome.kept) == (2, 2)
    after = contents(tmp_path / "out")
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"fog/5/ant.JPEG"}


def test_a_changed_picture_is_corrupted_again(source, tmp_path, make_picture):
    corrupt_folder(source, tmp_path / "out", FOG)
    before = contents(tmp_path / "out")
    make_picture(source / "dog" / "a.png", 7, (40, 30))
    later = (tmp_path / "out" / "fog" / "5" / "dog" / "a.JPEG").stat().st_mtime + 1
    os.utime(source / "dog" / "a.png", (later, later))
    outcome = corrupt_folder(source, tmp_path / "out", FOG)
    assert (outcome.made, outcome.kept) == (1, 2)
    after = contents(tmp_path / "out")
    assert [name for name in before if after[name] != before[name]] == ["fog/5/dog/a.JPEG"]


def test_a_flat_folder_stays_flat(tmp_path, make_picture):
    make_picture(tmp_path / "flat" / "a.png")
    corrupt_folder(tmp_path / "flat", tmp_path / "out", Corruptor(corruptions=["contrast"], scale="cifar"))
    assert pictures(tmp_path / "out") == ["contrast/5/a.JPEG"]
    assert open_picture(tmp_path / "out" / "contrast" / "5" / "a.JPEG").size == (32, 32)


def test_all_fifteen_are_the_default(tmp_path, make_picture):
    make_picture(tmp_path / "flat" / "a.png")
    outcome = corrupt_folder(tmp_path / "flat", tmp_path / "out", Corruptor(scale="cifar"))
    assert outcome.made == len(CORRUPTIONS)


def test_a_turned_photograph_is_turned_upright(tmp_path):
    picture = Image.new("RGB", (40, 20))
    exif = picture.getexif()
    exif[0x0112] = 6
    (tmp_path / "photos").mkdir()
    picture.save(tmp_path / "photos" / "a.jpg", exif=exif)
    corrupt_folder(tmp_path / "photos", tmp_path / "out", FOG)
    assert open_picture(tmp_path / "out" / "fog" / "5" / "a.JPEG").size == (20, 40)


def test_damaged_and_tiny_pictures_are_left_out_and_named(source, tmp_path, make_picture):
    (source / "dog" / "broken.jpg").write_bytes(b"broken")
    make_picture(source / "dog" / "tiny.png", size=(5, 5))
    outcome = corrupt_folder(source, tmp_path / "out", FOG)
    assert outcome.made == 3
    assert [Path(reason.split()[0]).name for reason in outcome.damaged] == ["broken.jpg", "tiny.png"]


def test_a_line_does_not_end_the_run(source, tmp_path, make_picture):
    make_picture(source / "dog" / "line.png", size=(40_000, 1))
    outcome = corrupt_folder(source, tmp_path / "out", Corruptor(corruptions=["contrast"]))
    assert (outcome.made, outcome.damaged) == (4, ())


def test_a_picture_too_large_for_the_memory_is_left_out_and_named(source, tmp_path, monkeypatch):
    def give_up(clean, *arguments, **options):
        if clean.shape[1:3] == (30, 40):
            raise MemoryError
        return clean

    monkeypatch.setattr("grotta.data.corrupt_folder.corrupt", give_up)
    outcome = corrupt_folder(source, tmp_path / "out", FOG)
    assert (outcome.made, outcome.damaged) == (
        2,
        (f"{source / 'dog' / 'a.png'} is too large for the memory of this machine",),
    )


def test_results_of_other_settings_are_not_mixed(source, tmp_path):
    corrupt_folder(source, tmp_path / "out", FOG)
    before = contents(tmp_path / "out")
    with pytest.raises(ValueError, match=r"got .*out, which holds others \(grotta-corrupt\.json\)"):
        corrupt_folder(source, tmp_path / "out", Corruptor(corruptions=["fog"], seed=1, keep_size=True))
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("content", [b"", b'{"scale": "ima', b"\xff\xfe"])
def test_unreadable_settings_are_named_with_what_to_do(source, tmp_path, content):
    corrupt_folder(source, tmp_path / "out", FOG)
    settings = tmp_path / "out" / "grotta-corrupt.json"
    settings.write_bytes(content)
    with pytest.raises(DamagedDataError, match=r"grotta-corrupt\.json cannot be read .* remove that file"):
        corrupt_folder(source, tmp_path / "out", FOG)
    settings.unlink()
    assert corrupt_folder(source, tmp_path / "out", FOG).kept == 3


def test_the_settings_are_written_once(source, tmp_path):
    corrupt_folder(source, tmp_path / "out", FOG)
    before = (tmp_path / "out" / "grotta-corrupt.json").stat()
    corrupt_folder(source, tmp_path / "out", FOG)
    after = (tmp_path / "out" / "grotta-corrupt.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_interrupted_write_leaves_no_half_picture(source, tmp_path, monkeypatch):
    def stop(path, content):
        with path.open("wb") as file:
            file.write(content[:100])
        raise KeyboardInterrupt

    corrupt_folder(source, tmp_path / "out", Corruptor(corruptions=["contrast"], keep_size=True))
    monkeypatch.setattr(Path, "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        corrupt_folder(source, tmp_path / "out", FOG)
    assert not [path for path in (tmp_path / "out" / "fog").rglob("*") if path.is_file()]
    monkeypatch.undo()
    assert corrupt_folder(source, tmp_path / "out", FOG).made == 3


def test_a_full_disk_leaves_no_short_picture(source, tmp_path, limited_files):
    with limited_files(600), pytest.raises(OSError, match=r"File too large: '.*/fog/5/.*\.JPEG'"):
        corrupt_folder(source, tmp_path / "out", FOG)
    assert set(contents(tmp_path / "out")) == {"grotta-corrupt.json", ".grotta-corrupt.json.lock"}
    assert corrupt_folder(source, tmp_path / "out", FOG).made == 3
    for name in pictures(tmp_path / "out"):
        open_picture(tmp_path / "out" / name)


@pytest.mark.parametrize("out", ["photos", "photos/out"])
def test_writing_into_the_source_is_refused(source, tmp_path, out):
    with pytest.raises(ValueError, match="out must be a folder beside"):
        corrupt_folder(source, tmp_path / out, FOG)


def test_two_pictures_of_one_name_are_refused(source, tmp_path, make_picture):
    make_picture(source / "dog" / "a.jpg")
    with pytest.raises(ValueError, match=r"dog/a\.jpg and dog/a\.png would both become a\.JPEG"):
        corrupt_folder(source, tmp_path / "out", FOG)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_pictures_is_a_clear_error(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match=r"is not a folder|has no pictures"):
        corrupt_folder(tmp_path / name, tmp_path / "out", FOG)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"corruptions": ["smoke"]}, "corruptions"),
        ({"corruptions": ["fog", "fog"]}, "corruptions"),
        ({"severities": [6]}, "severities"),
        ({"severities": [5, 5]}, "severities"),
        ({"scale": "big"}, "scale"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_a_wrong_setting_is_named(options, argument):
    with pytest.raises((ValueError, TypeError), match=f"^{argument} must be "):
        Corruptor(**options)
