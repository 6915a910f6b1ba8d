"""The source models in the package."""

import pytest
import torch

import grotta.data
from grotta.models import accuracy, create_model, list_models, model_card
from grotta.models.bundled import bundled_names, bundled_path
from grotta.models.card import card_markdown
from grotta.models.state_file import read_state


def test_every_bundled_file_belongs_to_a_network():
    assert bundled_names() == list_models(bundled=True)
    assert {"cifar10_resnet", "fashion_resnet8"} <= set(bundled_names())


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_files_are_small_and_finite(name):
    assert bundled_path(name).stat().st_size <= 1_500_000
    assert all(torch.isfinite(tensor).all() for tensor in read_state(bundled_path(name)).values())
    assert create_model(name, weights="bundled")(torch.rand(1, 3, 32, 32)).shape == (1, 10)


@pytest.mark.parametrize("name", bundled_names())
def test_the_card_beside_the_weights_is_the_one_inside(name):
    card = model_card(name)
    assert card["model"] == name
    assert card["parameters"] == sum(p.numel() for p in create_model(name).parameters())
    assert card["command"].startswith("grotta train ")
    assert bundled_path(name).with_suffix(".md").read_text(encoding="utf-8") == card_markdown(card)


def test_the_fashion_model_has_the_accuracy_of_its_card():
    measured = accuracy(create_model("fashion_resnet8", "bundled"), *grotta.data.load_clean("fashion", "test"))
    assert measured == pytest.approx(model_card("fashion_resnet8")["accuracy"], abs=5e-4)
    assert measured >= 0.92


def test_the_transformer_is_about_as_accurate_as_its_card_says():
    images, labels = grotta.data.load_clean("fashion", "test")
    some = torch.arange(1500)
    measured = accuracy(create_model("fashion_vit", "bundled"), images[some], labels[some])
    assert measured == pytest.approx(model_card("fashion_vit")["accuracy"], abs=0.02)
