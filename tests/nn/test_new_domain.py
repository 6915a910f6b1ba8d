"""Where images look like a new domain, gated layers jump sooner."""

import copy

import pytest
import torch
from torch import nn

from grotta.nn import GatedBN2d, move_gates, observing
from grotta.nn import gate as G

CHANNELS = 3
NEW, SAME = torch.tensor(True), torch.tensor(False)


def some(n, shift=0.0, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    own = 0.3 * torch.randn(n, CHANNELS, 1, 1, generator=generator, dtype=torch.float64)
    return torch.randn(n, CHANNELS, 4, 4, generator=generator, dtype=torch.float64) + own + shift


def show(layer, x, is_new_domain=None):
    """What the layer makes of the images, which move it."""
    labels = torch.full((len(x), 2), 0.5, dtype=torch.float64)
    with torch.no_grad(), observing(labels, is_new_domain) as seen:
        out = layer(x)
    move_gates(seen, labels, is_new_domain)
    return out


def settled(n=64, images=512):
    layer = GatedBN2d.from_bn(nn.BatchNorm2d(CHANNELS).double(), num_classes=2)
    for i in range(images // n):
        show(layer, some(n, seed=i))
    return layer


def moved_by(layer, x, is_new_domain):
    """How far the means of a copy of the layer move; and what it makes of the images."""
    own = copy.deepcopy(layer)
    out = show(own, x, is_new_domain)
    return (own.running_mean - layer.running_mean).mean().item(), out


def between_the_jumps(layer, n):
    """Images as surprising as lets a layer jump in a new domain, and not elsewhere."""
    expected = float(layer.gate.uncertainty + layer.gate.noise / n)
    assert G.JUMP_THEN < 4 < G.JUMP
    return some(n, (4 * expected) ** 0.5, seed=90)


@pytest.mark.parametrize("n", [16, 64])
def test_layers_jump_sooner_then(n):
    layer = settled(n)
    x = between_the_jumps(layer, n)
    (follows, slow), (jumps, fast) = moved_by(layer, x, SAME), moved_by(layer, x, NEW)
    assert jumps > 2 * follows > 0
    assert fast.mean().abs() < slow.mean().abs() / 2  # the batch itself is normalised by what it moved


def test_not_to_be_told_is_to_be_told_that_it_is_none():
    layer = settled()
    x = between_the_jumps(layer, 64)
    for one, other in zip(moved_by(layer, x, None), moved_by(layer, x, SAME)):
        assert (one == other) if isinstance(one, float) else torch.equal(one, other)


def test_what_does_not_surprise_a_layer_does_not_move_it_faster():
    layer = settled()
    x = some(64, seed=91)
    assert moved_by(layer, x, NEW)[0] == moved_by(layer, x, SAME)[0]


def test_images_that_waited_jump_with_those_of_the_next_batch():
    layer = settled(16)
    x = between_the_jumps(layer, 16)
    show(layer, x[:8], SAME)  # who looks at the images waits for sixteen as well
    assert moved_by(layer, x[8:], NEW)[0] > 2 * moved_by(layer, x[8:], SAME)[0] > 0


def test_layers_that_move_one_by_one_and_together_jump_alike():
    layers = [settled(), settled()]
    x = between_the_jumps(layers[0], 64)
    labels = torch.full((64, 2), 0.5, dtype=torch.float64)
    with torch.no_grad(), observing(labels, NEW) as seen:
        for layer in layers:
            layer(x)
    move_gates(seen, labels, NEW)
    alone = settled()
    show(alone, x, NEW)
    for layer in layers:
        torch.testing.assert_close(layer.running_mean, alone.running_mean)
