"""The bundled Fashion-MNIST test set, its training set, and fashion-c."""

import gzip
import hashlib
import importlib.resources
import struct

import numpy as np
import pytest
import torch

import grotta.data
from grotta.data import DamagedDataError, DataNotFoundError, corrupt
from grotta.data.sets import fashion


def write_idx(path, array, pack=gzip.compress):
    header = b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(header + array.tobytes()))


def write_train(folder, count=6, suffix=".gz", pack=gzip.compress):
    images = np.random.default_rng(0).integers(0, 256, (count, 28, 28), dtype=np.uint8)
    labels = np.arange(count, dtype=np.uint8) % 10
    write_idx(folder / f"train-images-idx3-ubyte{suffix}", images, pack)
    write_idx(folder / f"train-labels-idx1-ubyte{suffix}", labels, pack)
    return images, labels


@pytest.fixture(autouse=True)
def no_system_copy(monkeypatch, tmp_path):
    monkeypatch.setattr(fashion, "SYSTEM_FOLDER", tmp_path / "nowhere")


@pytest.fixture(scope="module")
def clean():
    return grotta.data.load_clean("fashion")


def test_the_bundled_pixels_are_the_published_ones(clean):
    images, labels = clean
    # The md5 sums of the unpacked t10k files, as published.
    grey = np.ascontiguousarray(images[:, 0, 2:30, 2:30].numpy())
    header = b"\0\0\x08\x03" + struct.pack(">3I", 10000, 28, 28)
    assert hashlib.md5(header + grey.tobytes()).hexdigest() == "8181f5470baa50b63fa0f6fddb340f0a"
    header = b"\0\0\x08\x01" + struct.pack(">I", 10000)
    assert (
        hashlib.md5(header + labels.numpy().astype(np.uint8).tobytes()).hexdigest()
        == "15d484375f8d13e6eb1aabb0c3f46965"
    )


def test_pictures_are_padded_to_32_and_grey_in_three_channels(clean):
    images, labels = clean
    assert images.shape == (10000, 3, 32, 32)
    assert images.dtype == torch.uint8
    assert labels.dtype == torch.int64
    assert torch.equal(images[:, 0], images[:, 1])
    assert torch.equal(images[:, 0], images[:, 2])
    assert images[:, :, 2:30, 2:30].sum() == images.sum()
    assert torch.bincount(labels).tolist() == [1000] * 10


def test_the_bundled_files_stay_small_and_have_their_licence():
    folder = importlib.resources.files("grotta.data") / "assets" / "fashion"
    assert sum(len(item.read_bytes()) for item in folder.iterdir()) < 5_000_000
    assert "Zalando SE" in (folder / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ["fashion-mnist", "FashionMNIST/raw", "fashion", "."])
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), ("", bytes)])
def test_the_training_set_is_found_in_a_data_root(tmp_path, place, suffix, pack):
    grey, targets = write_train(tmp_path / place, suffix=suffix, pack=pack)
    images, labels = grotta.data.load_clean("fashion", "train", root=tmp_path)
    assert torch.equal(images[:, 1, 2:30, 2:30], torch.from_numpy(grey))
    assert labels.tolist() == targets.tolist()


def test_a_missing_training_set_says_where_it_was_looked_for_and_how_to_get_it(tmp_path, own_cache):
    with pytest.raises(DataNotFoundError) as caught:
        grotta.data.load_clean("fashion", "train", root=tmp_path, download=False)
    for part in (str(tmp_path), str(own_cache / "data"), "train-images-idx3-ubyte.gz", "grotta data get fashion"):
        assert part in str(caught.value)


@pytest.mark.parametrize("keep", [0, 20, 1000])
def test_a_truncated_training_set_is_a_clear_error(tmp_path, keep):
    write_train(tmp_path / "fashion-mnist")
    path = tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedDataError, match=r"train-images-idx3-ubyte\.gz is not a complete idx file"):
        grotta.data.load_clean("fashion", "train", root=tmp_path)


def test_an_idx_file_whose_header_does_not_fit_is_a_clear_error(tmp_path):
    write_train(tmp_path / "fashion-mnist")
    path = tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-5]))
    with pytest.raises(DamagedDataError, match="the header does not fit the content"):
        grotta.data.load_clean("fashion", "train", root=tmp_path)


def test_pictures_and_labels_of_different_number_are_a_clear_error(tmp_path):
    write_train(tmp_path / "fashion-mnist")
    write_idx(tmp_path / "fashion-mnist" / "train-labels-idx1-ubyte.gz", np.zeros(5, np.uint8))
    with pytest.raises(DamagedDataError, match="5 labels"):
        grotta.data.load_clean("fashion", "train", root=tmp_path)


def test_fashion_c_is_the_corrupted_test_set_made_on_first_use(clean, own_cache):
    data = grotta.data.load("fashion-c")
    assert (data.domains, data.num_classes) == (grotta.data.CORRUPTIONS, 10)
    assert (data.image_shape, data.provenance) == ((3, 32, 32), "regenerated")
    assert not own_cache.exists()
    picked = [9999, 0, 8191, 8192]
    shown = data.images("contrast", picked)
    expected = corrupt(clean[0][picked].permute(0, 2, 3, 1).numpy(), "contrast", 5)
    assert torch.equal(shown.permute(0, 2, 3, 1), torch.from_numpy(expected))
    assert data.labels("contrast").tolist() == clean[1].tolist()
    assert len(list(own_cache.rglob("*.npy"))) == 1
