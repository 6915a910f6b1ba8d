"""The same readers on real data, found through GROTTA_DATA."""

import os

import pytest
import torch

import grotta.data

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def needs_data():
    if not os.environ.get("GROTTA_DATA"):
        pytest.skip("GROTTA_DATA is not set")


def test_cifar100_has_its_published_mean_and_ten_thousand_pictures():
    images, labels = grotta.data.load_clean("cifar100")
    assert images.shape == (10000, 3, 32, 32)
    assert torch.bincount(labels).tolist() == [100] * 100
    mean = (images.double() / 255).mean((0, 2, 3))
    assert torch.allclose(mean, torch.tensor([0.507, 0.487, 0.441], dtype=torch.float64), atol=3e-3)


def test_cifar100_c_has_the_contrast_it_should_have():
    clean, labels = grotta.data.load_clean("cifar100")
    data = grotta.data.load("cifar100-c", domains=["contrast"])
    assert data.labels("contrast").tolist() == labels.tolist()
    shown = data.images("contrast", range(100)).float()
    ratio = shown.std((2, 3)).mean() / clean[:100].float().std((2, 3)).mean()
    assert 0.14 < ratio < 0.16


def test_pacs_has_its_published_numbers():
    data = grotta.data.load("pacs")
    counts = {domain: len(data.labels(domain)) for domain in data.domains}
    assert counts == {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
    assert data.class_names == ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    assert data.images("sketch", [0, 3928]).shape == (2, 3, 224, 224)


def test_imagenet_pictures_are_read_at_224():
    data = grotta.data.load("imagenet")
    assert data.num_classes == 1000
    shown = data.images("val", range(32))
    assert shown.shape == (32, 3, 224, 224)
    assert 80 < shown.float().mean() < 150


@pytest.mark.slow
def test_imagenet_c_is_regenerated_at_224():
    data = grotta.data.load("imagenet-c", domains=["contrast"])
    assert data.images("contrast", [0, 1]).shape == (2, 3, 224, 224)
