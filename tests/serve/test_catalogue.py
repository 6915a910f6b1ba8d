"""Models as they are served."""

import pytest

import grotta
from grotta.serve import ModelSettings
from grotta.serve.catalogue import load_model


@pytest.mark.parametrize(
    ("given", "method", "preset"),
    [
        ({}, "grotta+", "lite"),
        ({"preset": "paper"}, "grotta+", "paper"),
        ({"method": "grotta+", "preset": "fast"}, "grotta+", "fast"),
        ({"method": "tent"}, "tent", "paper"),
    ],
)
def test_without_a_preset_a_model_gets_the_one_that_answers_soonest(given, method, preset):
    served = load_model(ModelSettings("m", "fashion_resnet8", **given))
    assert (served.settings.method, served.preset) == (method, preset)
    assert served.adapter().arguments == grotta.create(method, served.network, preset=preset).arguments
