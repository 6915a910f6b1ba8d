"""Recorded data sets: a folder by names, by file times, and a CSV; with labels and without; the parking cameras."""

import os

import numpy as np
import pytest

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError
from grotta.data.decode import read_picture, short_side


def names(data, domain):
    return [name.rpartition("/")[2] for name in data.open_images(domain).listing.names]


@pytest.fixture
def gate(tmp_path, make_picture):
    """Two cameras with labelled pictures whose names sort by number, not by letter."""
    for seed, path in enumerate(
        ("gate/car/f10.png", "gate/car/f2.png", "gate/none/f1.png", "yard/none/f3.png", "yard/car/f20.png")
    ):
        make_picture(tmp_path / "cams" / path, seed=seed)
    return tmp_path / "cams"


def test_a_folder_is_in_the_order_of_its_names_with_numbers_as_numbers(gate):
    data = grotta.data.load(f"folder:{gate}", recorded=True, image_size=16)
    assert data.domains == ("gate", "yard")
    assert names(data, "gate") == ["f1.png", "f2.png", "f10.png"]
    assert data.class_names == ("car", "none")
    assert data.labels("gate").tolist() == [1, 0, 0]
    expected = read_picture(gate / "gate" / "car" / "f10.png", short_side(16), 16)
    np.testing.assert_array_equal(data.images("gate", [2])[0].permute(1, 2, 0), expected)


@pytest.mark.parametrize("order", [("b", "a", "c"), ("c", "b", "a")])
def test_equal_names_are_in_the_order_of_their_folders_whatever_order_the_disk_has(tmp_path, make_picture, order):
    for name in order:
        make_picture(tmp_path / "cams" / "gate" / name / "f1.png")
    data = grotta.data.load(f"folder:{tmp_path / 'cams'}", recorded=True, image_size=16)
    assert data.labels("gate").tolist() == [0, 1, 2]


def test_a_folder_is_in_the_order_of_the_times_of_its_files(gate):
    for seconds, name in ((300, "none/f1.png"), (100, "car/f10.png"), (200, "car/f2.png")):
        os.utime(gate / "gate" / name, (1_000_000 + seconds,) * 2)
    data = grotta.data.load(f"times:{gate}", recorded=True, domains=["gate"])
    assert names(data, "gate") == ["f10.png", "f2.png", "f1.png"]
    assert data.moments["gate"].times.astype(int).tolist() == [1_000_100, 1_000_200, 1_000_300]


@pytest.mark.parametrize(("layout", "domain"), [("", "cams"), ("gate", "gate")])
def test_a_folder_without_classes_has_no_labels(tmp_path, make_picture, layout, domain):
    for number in (1, 2):
        make_picture(tmp_path / "cams" / layout / f"2012-12-12_13_05_0{number}.jpg", seed=number)
    data = grotta.data.load(f"folder:{tmp_path / 'cams'}", recorded=True)
    assert (data.domains, data.class_names, data.closed) == ((domain,), (), False)
    assert data.labels(domain).tolist() == [-1, -1]
    assert data.moments[domain].times.astype(str).tolist() == ["2012-12-12T13:05:01", "2012-12-12T13:05:02"]


def write_csv(folder, make_picture, text):
    for name in ("a.png", "b.png", "sub/c.png"):
        make_picture(folder / name)
    (folder / "list.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    return f"csv:{folder / 'list.csv'}"


def test_a_csv_is_in_the_order_of_its_rows(tmp_path, make_picture):
    name = write_csv(
        tmp_path,
        make_picture,
        "path,label,time,domain,stream\n"
        "sub/c.png,dog,2020-01-01T10:00:00,rain,north\n"
        "a.png,cat,2020-01-01T09:00:00Z,sun,south\n"
        "b.png,dog,2020-01-01T11:00,sun,north\n",
    )
    data = grotta.data.load(name, recorded=True, image_size=8, keep_decoded=True)
    assert (data.domains, data.class_names, data.closed) == (("north", "south"), ("cat", "dog"), True)
    assert data.labels("north").tolist() == [1, 1]
    assert data.moments["north"].conditions == ("rain", "sun")
    assert data.moments["south"].times[0] == np.datetime64("2020-01-01T09:00:00")
    assert data.images("north", [1]).shape == (1, 3, 8, 8)
    sunny = grotta.data.load(name, recorded=True, domains=["south", "north:sun"])
    assert [len(sunny.labels(domain)) for domain in sunny.domains] == [1, 1]


def test_labels_of_a_csv_may_be_numbers_missing_or_none_at_all(tmp_path, make_picture):
    data = grotta.data.load(write_csv(tmp_path, make_picture, "path,label\na.png,3\nb.png,\n"), recorded=True)
    assert (data.labels("recorded").tolist(), data.closed, data.num_classes) == ([3, -1], False, 4)
    data = grotta.data.load(write_csv(tmp_path, make_picture, "path,time\na.png,10\nb.png,11.5\n"), recorded=True)
    assert (data.labels("recorded").tolist(), data.class_names) == ([-1, -1], ())
    assert data.moments["recorded"].times.astype(int).tolist() == [10, 12]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label\ncat\n", "must have a column 'path'"),
        ("path\n", "has no rows"),
        ("", "must have a column 'path'"),
        ("path,label\n,cat\n", "line 2: expected a path"),
        ("path\na.png,cat\n", "line 2: expected a path and no more columns"),
        ("path,time\na.png,noon\n", "line 2: time must be ISO 8601 .* got 'noon'"),
        ("path,time\na.png,10\nb.png,9\n", "line 3: the times of stream 'recorded' must not go backwards"),
        ("path\na.png\nnone.png\n", "line 3: there is no file none.png"),
        ("path\n\udcff", "is not a CSV file"),
    ],
)
def test_a_damaged_csv_is_named_with_the_line(tmp_path, make_picture, text, message):
    with pytest.raises((DamagedDataError, DataNotFoundError), match=message):
        grotta.data.load(write_csv(tmp_path, make_picture, text), recorded=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pacs", "name must be a recording: folder:PATH, times:PATH, csv:FILE, video:FILE or one of pklot; got 'pacs'"),
        ("csv:/no/such.csv", "there is no such file"),
        ("folder:/no/such", "there is no such folder"),
        ("times:", "must have a path after times:"),
    ],
)
def test_what_is_no_recording_is_named(name, message):
    with pytest.raises((ValueError, DataNotFoundError), match=message):
        grotta.data.load(name, recorded=True)


def test_an_unknown_stream_is_named(gate):
    with pytest.raises(ValueError, match="domains must be different streams of gate, yard"):
        grotta.data.load(f"folder:{gate}", recorded=True, domains=["roof"])


def test_a_mixture_of_layouts_is_refused(gate, make_picture):
    make_picture(gate / "loose.png")
    with pytest.raises(DataNotFoundError, match="must hold pictures as .* found a mixture"):
        grotta.data.load(f"folder:{gate}", recorded=True)


def test_an_edited_picture_is_another_data_set(gate, make_picture):
    before = grotta.data.load(f"folder:{gate}", recorded=True).fingerprint()
    make_picture(gate / "gate" / "car" / "f2.png", seed=9)
    assert grotta.data.load(f"folder:{gate}", recorded=True).fingerprint() != before


@pytest.fixture
def pklot(tmp_path, make_picture):
    pictures = ("pucpr-sunny/empty/2012-09-12_10_05_57_005", "pucpr-cloudy/occupied/2012-09-12_09_00_00_001")
    pictures += ("pucpr-sunny/occupied/2012-09-12_10_05_57_002", "ufpr04-shaded/empty/2012-12-08_10_20_05_000")
    for path in pictures:
        make_picture(tmp_path / "pklot" / f"{path}.jpg", size=(36, 36))
    return tmp_path


def test_the_parking_cameras_are_in_the_order_of_time_across_weather(pklot):
    data = grotta.data.load("pklot", root=pklot, recorded=True, image_size=32)
    assert (data.domains, data.class_names) == (("pucpr", "ufpr04"), ("empty", "occupied"))
    assert [name[-7:-4] for name in data.open_images("pucpr").listing.names] == ["001", "002", "005"]
    assert data.labels("pucpr").tolist() == [1, 1, 0]
    assert data.moments["pucpr"].conditions == ("cloudy", "sunny", "sunny")
    assert data.moments["pucpr"].times[0] == np.datetime64("2012-09-12T09:00:00")
    assert len(grotta.data.load("pklot", root=pklot, recorded=True, domains=["pucpr:sunny"]).labels("pucpr:sunny")) == 2


def test_the_parking_cameras_are_also_domains_of_camera_and_weather(pklot):
    data = grotta.data.load("pklot", root=pklot, domains=["ufpr04-shaded", "pucpr-sunny"], image_size=32)
    assert [len(data.labels(domain)) for domain in data.domains] == [1, 2]


@pytest.mark.real
def test_the_real_parking_cameras_have_all_their_pictures_once():
    data = grotta.data.load("pklot", recorded=True, image_size=32)
    assert [len(data.labels(domain)) for domain in data.domains] == [10_512, 8_448, 10_200]
    for domain in data.domains:
        times = data.moments[domain].times
        assert (times[1:] >= times[:-1]).all()
