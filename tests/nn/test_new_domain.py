"""The first norm layer notices a new domain, and lets the others jump sooner."""

import copy

import pytest
import torch
from torch import nn

from grotta.nn import GatedBN2d, move_gates, observing
from grotta.nn import gate as G

CHANNELS = 3


def two_layers():
    return [GatedBN2d.from_bn(nn.BatchNorm2d(CHANNELS).double(), num_classes=2) for _ in range(2)]


def some(n, shift=0.0, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    own = 0.3 * torch.randn(n, CHANNELS, 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(n, CHANNELS, 4, 4, generator=generator, dtype=torch.float64) + own + shift


def show(layers, xs):
    """Show each layer its images; whether they are of a new domain."""
    labels = torch.full((len(xs[0]), 2), 0.5, dtype=torch.float64)
    with torch.no_grad(), observing(labels) as seen:
        for layer, x in zip(layers, xs):
            layer(x)
    move_gates(seen, labels)
    told = [bool(shown.is_new_domain) for _, shown in seen]
    assert len(set(told)) == 1  # all know what the first one sees
    return told[0]


def settled(n=64, images=512):
    layers = two_layers()
    told = [show(layers, [some(n, seed=2 * i), some(n, seed=2 * i + 1)]) for i in range(images // n)]
    assert not any(told)  # not even the first batch, whatever it shows
    return layers


def test_a_great_change_to_the_first_layer_is_a_new_domain_and_only_once():
    layers = settled()
    assert show(layers, [some(64, 3.0, seed=90), some(64, seed=91)])
    assert not show(layers, [some(64, 3.0, seed=92), some(64, seed=93)])


def test_nothing_is_one_before_it_is_known_what_other_labels_look_like():
    assert not show(settled(images=384), [some(64, 3.0, seed=90), some(64, seed=91)])


def test_a_change_that_only_a_later_layer_sees_is_none():
    assert not show(settled(), [some(64, seed=90), some(64, 3.0, seed=91)])


def test_fewer_than_sixteen_images_wait_and_then_tell():
    layers = settled()
    assert not show(layers, [some(8, 3.0, seed=90), some(8, seed=91)])
    assert show(layers, [some(8, 3.0, seed=92), some(8, seed=93)])


@pytest.mark.parametrize("n", [16, 64])
def test_the_other_layers_jump_sooner_then(n):
    layers = settled(n)
    gate = layers[1].gate
    expected = float(gate.uncertainty + gate.noise / n)
    shift = (4 * expected) ** 0.5  # a surprise between JUMP_THEN and JUMP times what is expected
    moved = []
    for first in (0.0, 3.0):
        pair = copy.deepcopy(layers)
        show(pair, [some(n, first, seed=90), some(n, shift, seed=91)])
        moved.append((pair[1].running_mean - layers[1].running_mean).mean().item())
    assert moved[1] > 2 * moved[0] > 0


def test_one_layer_by_hand():
    gate = G.Gate(torch.zeros(1), torch.ones(1), torch.tensor(0.1), torch.tensor(6.4))
    for mean, new in ((2.2, False), (2.3, True)):  # 25 times 0.1 + 6.4 / 64 is 5, and 2.24 squared
        seen = G.Observation(torch.tensor([mean]), torch.ones(1), torch.zeros(1), 64)
        assert bool(G.sees_new_domain(gate, seen, 0.0, torch.tensor(450.0))) is new
        assert not G.sees_new_domain(gate, seen._replace(size=15), 0.0, torch.tensor(450.0))
        assert not G.sees_new_domain(gate, seen, 0.0, torch.tensor(449.0))
