"""What `load` takes, and what it says to anything else."""

import errno
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grotta.data
from grotta.data.dataset import DomainDataset
from grotta.data.roots import data_roots


def test_every_name_is_known_to_the_error_of_an_unknown_one():
    with pytest.raises(ValueError, match="got 'mnist'") as caught:
        grotta.data.load("mnist")
    assert all(name in str(caught.value) for name in grotta.data.list_datasets())


def test_a_name_that_is_none_is_refused():
    with pytest.raises(TypeError, match="name must be a string, got 3"):
        grotta.data.load(3)
    with pytest.raises(ValueError, match="name must have a path after folder:"):
        grotta.data.load("folder:")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"severity": 0}, "severity"),
        ({"severity": 6}, "severity"),
        ({"severity": 5.0}, "severity"),
        ({"severity": True}, "severity"),
        ({"severity": "5"}, "severity"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"image_size": 0}, "image_size"),
        ({"domains": []}, "domains"),
        ({"domains": ["smoke"]}, "domains"),
        ({"domains": ["fog", "fog"]}, "domains"),
        ({"root": "/no/such/folder"}, "root"),
    ],
)
def test_a_wrong_argument_is_named(options, argument):
    with pytest.raises((ValueError, TypeError), match=f"^{argument} must be "):
        grotta.data.load("fashion-c", **options)


@pytest.mark.parametrize(("name", "split", "argument"), [("pacs", "test", "name"), ("fashion", "val", "split")])
def test_a_wrong_argument_of_load_clean_is_named(name, split, argument):
    with pytest.raises(ValueError, match=f"^{argument} must be one of "):
        grotta.data.load_clean(name, split)


def test_roots_are_searched_in_order(tmp_path, monkeypatch, own_cache):
    monkeypatch.setenv("GROTTA_DATA", f"{tmp_path / 'b'}:{tmp_path / 'c'}")
    expected = (tmp_path, tmp_path / "b", tmp_path / "c", own_cache / "data")
    assert data_roots(tmp_path) == expected
    assert data_roots() == expected[1:]


@pytest.mark.parametrize("origin", ["root or --data-root", "GROTTA_DATA", "the cache, which GROTTA_CACHE names"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [("pacs", PermissionError(errno.EACCES, "Permission denied")), ("imagenet", OSError(errno.EIO, "I/O error"))],
)
def test_a_data_root_that_cannot_be_listed_is_named_with_its_origin(
    tmp_path, own_cache, monkeypatch, origin, name, reason
):
    place = own_cache / "data" if "cache" in origin else tmp_path / "data"
    place.mkdir(parents=True)
    if name == "imagenet":
        (place / "val").mkdir()
    unread = place if name == "pacs" else place / "val"
    if origin == "GROTTA_DATA":
        monkeypatch.setenv("GROTTA_DATA", f"{tmp_path / 'none'}:{place}")
    listed = Path.iterdir

    def iterdir(path):
        if path == unread:
            raise OSError(reason.errno, reason.strerror, str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    where = f"the data root {place}" if unread == place else f"{unread} in the data root {place}"
    with pytest.raises(type(reason)) as caught:
        grotta.data.load(name, root=place if origin.startswith("root") else None)
    assert str(caught.value) == f"{where} (from {origin}) cannot be used: {reason.strerror}"


def test_a_data_root_that_cannot_be_searched_is_named_by_load_clean(monkeypatch):
    too_long = "x" * 300  # an error even for a user who may read everything
    monkeypatch.setenv("GROTTA_DATA", too_long)
    message = rf"^{too_long}/cifar10/test_images\.npy in the data root {too_long} \(from GROTTA_DATA\) cannot be used: "
    with pytest.raises(OSError, match=message):
        grotta.data.load_clean("cifar10", download=False)
    with pytest.raises(
        ValueError, match=rf"^root must be a folder, got '{too_long}', which cannot be read: File name too long$"
    ):
        grotta.data.load_clean("cifar10", root=too_long)


def test_a_data_root_that_is_not_needed_may_be_unreadable(monkeypatch):
    monkeypatch.setenv("GROTTA_DATA", "x" * 300)
    assert grotta.data.load("fashion-c", domains=["fog"]).domains == ("fog",)


def open_counted(domain):
    return np.arange(5 * 2 * 2 * 3, dtype=np.uint8).reshape(5, 2, 2, 3)


def open_labels(domain):
    return np.arange(5)


@pytest.fixture(scope="module")
def counted() -> DomainDataset:
    return DomainDataset(
        name="counted",
        domains=("only",),
        class_names=tuple("abcde"),
        image_shape=(3, 2, 2),
        provenance="original",
        open_images=open_counted,
        open_labels=open_labels,
    )


@given(indices=st.lists(st.integers(0, 4), max_size=20))
def test_images_are_those_at_the_indices(counted, indices):
    shown = counted.images("only", indices)
    assert shown.shape == (len(indices), 3, 2, 2)
    assert shown.is_contiguous()
    for picture, index in zip(shown, indices):
        assert torch.equal(picture.permute(1, 2, 0), torch.from_numpy(open_counted("only")[index]))


@pytest.mark.parametrize("indices", [[5], [-1], [0, 99]])
def test_an_index_outside_is_named(counted, indices):
    with pytest.raises(IndexError, match=rf"must be in \[0, 5\), the images of domain 'only', got {indices[-1]}"):
        counted.images("only", indices)


@pytest.mark.parametrize("indices", [[0.5], [[0, 1]], [True, False], 3])
def test_indices_of_another_kind_are_refused(counted, indices):
    with pytest.raises(ValueError, match=r"indices must be integers \(n,\)"):
        counted.images("only", indices)


def test_an_unknown_domain_is_named(counted):
    with pytest.raises(ValueError, match="domain must be one of only, those of counted; got 'other'"):
        counted.images("other", [0])
