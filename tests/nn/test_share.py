"""Copies of networks: the weights are the caller's, everything else is the copy's own."""

import copy

import pytest
import torch
from torch import nn

from grotta.models import create_model
from grotta.nn import shared_copy


@pytest.mark.parametrize("name", ["resnet20", "mobilenet_v2", "resnet26_gn", "fashion_vit"])
def test_a_shared_copy_computes_what_a_deep_copy_does(name):
    model = create_model(name, num_classes=10)
    ours, theirs = shared_copy(model), copy.deepcopy(model).eval()
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(ours(x), theirs(x))
    assert [type(m) for m in ours.modules()] == [type(m) for m in theirs.modules()]
    assert all(a is not b for a, b in zip(ours.modules(), model.modules()))
    own = {id(table) for m in model.modules() for table in vars(m).values() if isinstance(table, dict | set | list)}
    assert not any(id(table) in own for m in ours.modules() for table in vars(m).values())
    pairs = zip(ours.state_dict(keep_vars=True).items(), model.state_dict(keep_vars=True).items())
    assert all(a == b and s.data_ptr() == t.data_ptr() for (a, s), (b, t) in pairs)


def test_what_is_done_to_a_copy_does_not_reach_the_model():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
    made = shared_copy(model)
    made[0].register_forward_pre_hook(lambda *_: None)
    made[0].stride = (2, 2)
    made[1].register_buffer("extra", torch.zeros(1), persistent=False)
    made[1].bias = nn.Parameter(torch.ones(4))
    assert not model[0]._forward_pre_hooks
    assert model[0].stride == (1, 1)
    assert "extra" not in model[1]._buffers | dict.fromkeys(model[1]._non_persistent_buffers_set)
    assert torch.equal(model[1].bias, torch.zeros(4))


def test_a_layer_that_is_used_twice_is_copied_once():
    layer = nn.Linear(4, 4)
    made = shared_copy(nn.Sequential(layer, nn.ReLU(), layer))
    assert made[0] is made[2]


def test_layers_with_more_than_their_kind_has_are_copied_too():
    layer = nn.Linear(4, 4)
    layer.notes = {"of": [torch.ones(1)]}
    layer.other = nn.utils.spectral_norm(nn.Linear(4, 4))
    made = shared_copy(nn.Sequential(layer))
    assert made[0].notes["of"][0] is not layer.notes["of"][0]
    assert torch.equal(made[0].notes["of"][0], torch.ones(1))
    assert made[0].other is not layer.other
