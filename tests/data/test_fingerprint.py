"""A fingerprint is that of the pictures: the same wherever they are, another one when any of them changes."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

import grotta.data
from grotta.data.corruptions import CORRUPTIONS


def write_published(root, change=0):
    folder = root / "CIFAR-10-C"
    folder.mkdir(parents=True)
    np.save(folder / "labels.npy", np.zeros(20, np.int64))
    for number, name in enumerate(CORRUPTIONS[:2]):
        images = np.random.default_rng(number).integers(0, 256, (20, 32, 32, 3), np.uint8)
        images[-1, -1, -1, -1] ^= change
        np.save(folder / f"{name}.npy", images)
    return {"name": "cifar10-c", "root": root, "domains": CORRUPTIONS[:2]}


@pytest.fixture
def write_clean_imagenet(make_picture):
    def write(root, change=0):
        folder = root / "imagenet-val-1k"
        for number in range(3):
            make_picture(folder / f"{number}.png", seed=number + change * (number == 2))
        (folder / "labels.json").write_text('{"0.png": 0, "1.png": 1, "2.png": 2}')
        return {"name": "imagenet-c", "root": root, "domains": ["fog"], "image_size": 28}

    return write


@pytest.fixture
def write_pacs(make_picture):
    def write(root, change=0):
        for number, domain in enumerate(("photo", "sketch")):
            make_picture(root / "pacs" / domain / "dog" / "a.bmp", seed=number + change)
        return {"name": "pacs", "root": root, "domains": ["photo", "sketch"], "image_size": 14}

    return write


@pytest.fixture(params=["arrays", "imagenet", "pacs"])
def write(request):
    if request.param == "arrays":
        return write_published
    return request.getfixturevalue("write_clean_imagenet" if request.param == "imagenet" else "write_pacs")


def test_equal_pictures_elsewhere_have_the_same_fingerprint_and_others_another(tmp_path, write):
    here = grotta.data.load(**write(tmp_path / "here"))
    there = grotta.data.load(**write(tmp_path / "there"))
    other = grotta.data.load(**write(tmp_path / "other", change=1))
    assert here.fingerprint() == there.fingerprint() != other.fingerprint()


def test_a_change_is_seen_in_the_same_place_and_a_touch_is_none(tmp_path, write):
    how = write(tmp_path / "root")
    before = grotta.data.load(**how).fingerprint()
    for path in (tmp_path / "root").rglob("*.*"):
        os.utime(path, (1, 1))
    assert grotta.data.load(**how).fingerprint() == before
    shutil.rmtree(tmp_path / "root")
    write(tmp_path / "root", change=1)
    assert grotta.data.load(**how).fingerprint() != before


def test_one_flipped_byte_of_a_large_picture_is_seen(tmp_path, make_picture):
    picture = tmp_path / "pacs" / "photo" / "dog" / "a.bmp"
    make_picture(picture, size=(64, 64))
    how = {"name": "pacs", "root": tmp_path, "domains": ["photo"], "image_size": 14}
    before = grotta.data.load(**how).fingerprint()
    content = bytearray(picture.read_bytes())
    assert len(content) > 10_000
    content[5_000] ^= 1
    picture.write_bytes(content)
    assert grotta.data.load(**how).fingerprint() != before


def test_the_order_of_the_domains_and_the_size_count(tmp_path, write_pacs):
    how = write_pacs(tmp_path)
    prints = {
        grotta.data.load(**{**how, **change}).fingerprint()
        for change in ({}, {"domains": ["sketch", "photo"]}, {"image_size": 28}, {"domains": ["photo"]})
    }
    assert len(prints) == 4


def test_kept_decoded_is_the_same_data(tmp_path, write_pacs):
    how = write_pacs(tmp_path)
    assert grotta.data.load(**how).fingerprint() == grotta.data.load(**how, keep_decoded=True).fingerprint()


def test_severity_and_seed_of_regenerated_pictures_count_and_nothing_is_made(own_cache):
    prints = [
        grotta.data.load("fashion-c", domains=["fog"], **how).fingerprint()
        for how in ({}, {}, {"severity": 3}, {"seed": 1})
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    assert not list(own_cache.rglob("*.npy"))


def test_by_default_the_pictures_themselves_are_read(tmp_path):
    how = write_published(tmp_path / "a")
    plain = replace(grotta.data.load(**how), identify=None)
    before = plain.identity(CORRUPTIONS[0])
    assert before == plain.identity(CORRUPTIONS[0]) != plain.identity(CORRUPTIONS[1])
