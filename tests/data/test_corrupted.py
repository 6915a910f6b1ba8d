"""CIFAR-10-C and CIFAR-100-C: published arrays where they are, else made from the clean test set."""

import pickle

import numpy as np
import pytest
import torch

import grotta.data
from grotta.data import CORRUPTIONS, DamagedDataError, DataNotFoundError, corrupt, regenerate

COUNT = 6


@pytest.fixture(autouse=True)
def few_pictures(few_cifar_pictures):
    few_cifar_pictures(COUNT)


def write_published(folder, num_classes=10, names=CORRUPTIONS):
    """The published layout, with 6 instead of 10,000 pictures a severity."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    labels = np.tile(generator.integers(0, num_classes, COUNT), 5).astype(np.uint8)
    np.save(folder / "labels.npy", labels)
    arrays = {name: generator.integers(0, 256, (5 * COUNT, 32, 32, 3), dtype=np.uint8) for name in names}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return arrays, labels


def write_clean(folder, num_classes=10):
    """The clean test set in our own layout."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (COUNT, 32, 32, 3), dtype=np.uint8)
    labels = generator.integers(0, num_classes, COUNT)
    np.save(folder / "test_images.npy", images)
    np.save(folder / "test_labels.npy", labels)
    return images, labels


@pytest.mark.parametrize(
    ("name", "folder", "classes"), [("cifar10-c", "CIFAR-10-C", 10), ("cifar100-c", "CIFAR-100-C", 100)]
)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_published_arrays_are_read_at_their_severity(tmp_path, name, folder, classes, severity):
    arrays, labels = write_published(tmp_path / folder, classes)
    data = grotta.data.load(name, root=tmp_path, severity=severity)
    assert (data.provenance, data.domains, data.num_classes) == ("published", CORRUPTIONS, classes)
    first = (severity - 1) * COUNT
    for domain in CORRUPTIONS:
        expected = arrays[domain][[first + 4, first]].transpose(0, 3, 1, 2)
        assert np.array_equal(data.images(domain, [4, 0]).numpy(), expected)
        assert data.labels(domain).tolist() == labels[first : first + COUNT].tolist()
        assert data.labels(domain).dtype == np.int64


def test_the_published_folder_itself_may_be_the_root(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    assert grotta.data.load("cifar10-c", root=tmp_path / "CIFAR-10-C").provenance == "published"


def test_cifar10_c_is_not_taken_for_cifar100_c(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    with pytest.raises(DataNotFoundError):
        grotta.data.load("cifar100-c", root=tmp_path / "CIFAR-10-C", download=False)


def test_published_arrays_go_before_the_clean_set(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    write_clean(tmp_path / "cifar10")
    assert grotta.data.load("cifar10-c", root=tmp_path).provenance == "published"


def test_without_published_arrays_the_clean_set_is_corrupted(tmp_path):
    images, labels = write_clean(tmp_path / "cifar10")
    data = grotta.data.load("cifar10-c", root=tmp_path, severity=2, seed=4)
    assert data.provenance == "regenerated"
    for domain in ("gaussian_noise", "fog", "pixelate"):
        expected = corrupt(images, domain, 2, seed=4).transpose(0, 3, 1, 2)
        assert np.array_equal(data.images(domain, range(COUNT)).numpy(), expected)
        assert data.labels(domain).tolist() == labels.tolist()


def test_noise_does_not_depend_on_the_pieces_it_is_made_in(tmp_path, monkeypatch):
    images, _ = write_clean(tmp_path / "cifar10")
    monkeypatch.setattr(regenerate, "READ_PIXELS", 4 * 32 * 32)
    data = grotta.data.load("cifar10-c", root=tmp_path)
    shown = data.images("impulse_noise", range(COUNT)).numpy()
    assert np.array_equal(shown, corrupt(images, "impulse_noise").transpose(0, 3, 1, 2))


def test_what_was_made_is_kept_apart_by_everything_that_changes_it(tmp_path, own_cache, monkeypatch):
    write_clean(tmp_path / "a" / "cifar10")
    images, _ = write_clean(tmp_path / "b" / "cifar10")
    np.save(tmp_path / "b" / "cifar10" / "test_images.npy", 255 - images)
    choices = [{}, {"seed": 1}, {"severity": 4}, {"root": tmp_path / "b"}]
    for expected, options in enumerate(choices, start=1):
        grotta.data.load("cifar10-c", **{"root": tmp_path / "a", **options}).images("contrast", [0])
        assert len(list(own_cache.rglob("*.npy"))) == expected
    monkeypatch.setattr(regenerate, "version_of", lambda corruption: "another")
    grotta.data.load("cifar10-c", root=tmp_path / "a").images("contrast", [0])
    assert len(list(own_cache.rglob("*.npy"))) == len(choices) + 1


def test_a_second_load_reads_what_the_first_made(tmp_path, monkeypatch):
    write_clean(tmp_path / "cifar10")
    first = grotta.data.load("cifar10-c", root=tmp_path).images("contrast", range(COUNT))
    monkeypatch.setattr(regenerate, "corrupt", None)
    assert torch.equal(grotta.data.load("cifar10-c", root=tmp_path).images("contrast", range(COUNT)), first)


def test_prepare_makes_every_domain(tmp_path, own_cache):
    write_clean(tmp_path / "cifar10")
    grotta.data.load("cifar10-c", root=tmp_path, domains=["contrast", "fog"]).prepare()
    assert len(list(own_cache.rglob("*.npy"))) == 2


@pytest.mark.parametrize("published", [True, False])
def test_a_data_set_is_small_when_pickled_and_works_afterwards(tmp_path, published):
    write_published(tmp_path / "CIFAR-10-C") if published else write_clean(tmp_path / "cifar10")
    data = grotta.data.load("cifar10-c", root=tmp_path)
    before = data.images("fog", [5])
    copied = pickle.dumps(data)
    assert len(copied) < 5000
    assert torch.equal(pickle.loads(copied).images("fog", [5]), before)


def test_a_missing_array_is_named(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    (tmp_path / "CIFAR-10-C" / "fog.npy").rename(tmp_path / "CIFAR-10-C" / "fogg.npy")
    with pytest.raises(DataNotFoundError, match=r"has no fog\.npy; it has .*fogg\.npy"):
        grotta.data.load("cifar10-c", root=tmp_path)
    assert grotta.data.load("cifar10-c", root=tmp_path, domains=["snow"]).domains == ("snow",)


@pytest.mark.parametrize("names", [CORRUPTIONS, ("snow",)])
def test_missing_labels_are_named_and_published_arrays_not_replaced_by_regenerated_ones(tmp_path, names):
    write_published(tmp_path / "CIFAR-10-C", names=names)
    (tmp_path / "CIFAR-10-C" / "labels.npy").unlink()
    write_clean(tmp_path / "cifar10")
    with pytest.raises(DataNotFoundError, match=r"CIFAR-10-C has no labels\.npy; it has .*snow\.npy"):
        grotta.data.load("cifar10-c", root=tmp_path, domains=["snow"])


def test_the_first_copy_with_all_that_is_wanted_is_taken(tmp_path, monkeypatch):
    first, _ = write_published(tmp_path / "a" / "CIFAR-10-C", names=["fog"])
    second, _ = write_published(tmp_path / "b" / "CIFAR-10-C")
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path / "b"))
    for domains, arrays in ((["fog"], first), (None, second)):
        shown = grotta.data.load("cifar10-c", root=tmp_path / "a", domains=domains).images("fog", [COUNT - 1])
        assert np.array_equal(shown[0].permute(1, 2, 0).numpy(), arrays["fog"][-1])


@pytest.mark.parametrize("keep", [0, 60, 3000])
def test_a_truncated_array_is_a_clear_error(tmp_path, keep):
    write_published(tmp_path / "CIFAR-10-C")
    path = tmp_path / "CIFAR-10-C" / "fog.npy"
    path.write_bytes(path.read_bytes()[:keep])
    data = grotta.data.load("cifar10-c", root=tmp_path)
    with pytest.raises(DamagedDataError, match=r"fog\.npy is not a complete \.npy file"):
        data.images("fog", [0])
    assert data.images("snow", [0]).shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((30, 32, 32, 3)),
        np.zeros((30, 3072), np.uint8),
        np.zeros((30, 64, 64, 3), np.uint8),
        np.zeros((30, 32, 32, 1), np.uint8),
        np.uint8(0),
    ],
)
def test_an_array_of_another_kind_is_a_clear_error(tmp_path, wrong):
    write_published(tmp_path / "CIFAR-10-C")
    np.save(tmp_path / "CIFAR-10-C" / "fog.npy", wrong)
    with pytest.raises(DamagedDataError, match=r"fog\.npy: expected uint8 \(5n, 32, 32, 3\)"):
        grotta.data.load("cifar10-c", root=tmp_path).images("fog", [0])


def test_an_array_with_another_number_of_labels_is_a_clear_error(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    np.save(tmp_path / "CIFAR-10-C" / "labels.npy", np.zeros(50, np.uint8))
    with pytest.raises(DamagedDataError, match=r"fog\.npy has 30 pictures, but labels\.npy 50 labels"):
        grotta.data.load("cifar10-c", root=tmp_path).images("fog", [0])


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (np.full(30, 10), "labels from 0 to 9, found 10 to 10"),
        (np.full(30, -1), "labels from 0 to 9, found -1 to -1"),
        (np.full(30, 0.5), r"integers \(n,\), found float64"),
        (np.zeros((30, 1), int), r"integers \(n,\), found int64 \(30, 1\)"),
        (np.int64(3), r"integers \(n,\), found int64 \(\)"),
        (np.array(["cat"] * 30), r"integers \(n,\), found <U3"),
        (np.zeros(0, int), "must be|not a complete"),
        (np.zeros(31, int), "equally many labels for 5 severities, found 31"),
    ],
)
def test_labels_of_another_kind_are_a_clear_error(tmp_path, wrong, expected):
    write_published(tmp_path / "CIFAR-10-C")
    np.save(tmp_path / "CIFAR-10-C" / "labels.npy", wrong)
    data = grotta.data.load("cifar10-c", root=tmp_path)
    for read in (data.labels, lambda domain: data.images(domain, [0])):
        with pytest.raises(DamagedDataError, match=rf"labels\.npy.*({expected})"):
            read("fog")


def test_an_npz_archive_called_npy_is_a_clear_error(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    with (tmp_path / "CIFAR-10-C" / "fog.npy").open("wb") as file:
        np.savez(file, np.zeros((30, 32, 32, 3), np.uint8))
    with pytest.raises(DamagedDataError, match=r"fog\.npy is not a complete \.npy file: it is a \.npz archive"):
        grotta.data.load("cifar10-c", root=tmp_path).images("fog", [0])


def test_a_pickle_in_an_array_is_never_opened(tmp_path):
    write_published(tmp_path / "CIFAR-10-C")
    np.save(tmp_path / "CIFAR-10-C" / "fog.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedDataError, match=r"fog\.npy is not a complete \.npy file"):
        grotta.data.load("cifar10-c", root=tmp_path).images("fog", [0])
