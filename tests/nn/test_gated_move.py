"""Layers that move together move as each would by itself."""

import copy
import threading

import pytest
import torch
from torch import nn

from grotta.nn import GatedBN1d, GatedBN2d, gated_move, move_gates, observing


def some(n, channels, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    own = torch.randn(n, channels, 1, 1, generator=generator, dtype=torch.float64)
    return (torch.randn(n, channels, 3, 3, generator=generator, dtype=torch.float64) + own + seed % 3).to(dtype)


def labels_of(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, generator=generator, dtype=torch.float64).softmax(1)


def a_zoo():
    """Layers that differ in all that may keep them apart."""
    double = {"dtype": torch.float64}
    return [
        GatedBN2d(4, num_classes=3, **double),
        GatedBN2d(1, num_classes=3, **double),
        GatedBN2d(6, num_classes=3, eps=1e-3, **double),
        GatedBN2d(5, num_classes=2, **double),
        GatedBN2d(2, **double),
        GatedBN2d(3, num_classes=3),
        GatedBN2d(7, num_classes=3, affine=False, **double),
    ]


def show(layers, n, seed, labels=None):
    with observing(labels) as seen:
        for layer in layers:
            layer(some(n, layer.num_features, seed, layer.running_mean.dtype))
    return seen


def assert_same_state(layers, others):
    for layer, other in zip(layers, others):
        torch.testing.assert_close(layer.state_dict(), other.state_dict())


@pytest.mark.parametrize("largest", [gated_move.LARGEST, 20, 1])
@pytest.mark.parametrize("known", [True, False])
def test_layers_move_together_as_each_by_itself(known, largest, monkeypatch):
    monkeypatch.setattr(gated_move, "LARGEST", largest)
    together = a_zoo()
    apart = copy.deepcopy(together)
    for seed, n in enumerate((20, 64, 5, 3, 1, 9, 2, 16)):
        labels = labels_of(n, seed) if known else None
        move_gates(show(together, n, seed, labels), labels)
        for layer in apart:
            move_gates(show([layer], n, seed, labels), labels)
        assert_same_state(together, apart)


def test_a_layer_that_was_run_twice_moves_twice():
    twice, by_turns = a_zoo(), a_zoo()
    labels = labels_of(20, 0)
    first, second = show(twice, 20, 0, labels), show(twice, 20, 1, labels)
    move_gates([*first, *second], labels)
    first, second = show(by_turns, 20, 0, labels), show(by_turns, 20, 1, labels)
    move_gates(first, labels)
    move_gates(second, labels)
    assert_same_state(twice, by_turns)


def test_small_batches_of_a_layer_that_was_run_twice_wait_together():
    layer = GatedBN2d(3, num_classes=3, dtype=torch.float64)
    move_gates(show([layer, layer], 5, 0))
    assert int(layer.waiting_images) == 10
    move_gates(show([layer, layer], 5, 0))  # the first five make fifteen, the others twenty
    assert int(layer.waiting_images) == 0
    assert layer.noise > 0


def test_a_layer_that_was_not_run_stays_and_catches_up():
    """What waits differs from layer to layer then."""
    layers = [GatedBN2d(3, num_classes=3, dtype=torch.float64) for _ in range(2)]
    move_gates(show(layers[:1], 7, 0))
    assert [int(layer.waiting_images) for layer in layers] == [7, 0]
    before = copy.deepcopy(layers[1].state_dict())
    move_gates(show(layers[:1], 9, 1))
    assert all(torch.equal(tensor, before[name]) for name, tensor in layers[1].state_dict().items())
    move_gates(show(layers, 9, 1))
    assert [int(layer.waiting_images) for layer in layers] == [9, 9]


def test_nothing_seen_moves_nothing():
    move_gates([])


def test_rows_of_tokens_and_images_move_together():
    """A network that flattens (B, tokens, C) for one layer, and not for another."""
    layers = [GatedBN1d(3, num_classes=3, dtype=torch.float64) for _ in range(3)]
    x, labels = some(8, 3, 0)[:, :, 0, 0], labels_of(8, 0)
    with observing(labels) as seen:
        for layer, shown in zip(layers, (x, x.repeat_interleave(4, 0), x[:5])):  # the last one fits no labels
            layer(shown)
    move_gates(seen, labels)
    torch.testing.assert_close(layers[1].offset_images[:, None].sum(), labels.sum())
    assert layers[0].offset_images.sum() > 0
    assert not layers[2].offset_images.any()
    assert [int(layer.waiting_images) for layer in layers] == [8, 0, 5]


def test_buffers_stay_where_they_are():
    """Views, optimizers and rollbacks hold on to them."""
    layers = a_zoo()
    places = [tensor.data_ptr() for layer in layers for tensor in layer.buffers()]
    for n in (5, 64):
        move_gates(show(layers, n, n, labels_of(n, n)), labels_of(n, n))
    assert places == [tensor.data_ptr() for layer in layers for tensor in layer.buffers()]


def test_what_was_seen_in_inference_mode_and_autocast_moves_full_precision():
    exact, half = (nn.Sequential(GatedBN2d(4, num_classes=3)) for _ in range(2))
    x, labels = some(32, 4, 0, torch.float32), labels_of(32, 0).float()
    with observing(labels) as seen:
        exact(x)
    move_gates(seen, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.inference_mode(), observing(labels) as seen:
            assert half(x.bfloat16()).dtype == torch.bfloat16
        move_gates(seen, labels)
    assert half[0].offsets.dtype == torch.float32
    torch.testing.assert_close(half.state_dict(), exact.state_dict(), rtol=0.02, atol=0.02)


def test_threads_do_not_see_each_others_layers():
    zoos = [a_zoo() for _ in range(4)]
    expected = a_zoo()
    for seed in range(10):
        move_gates(show(expected, 20, seed, labels_of(20, seed)), labels_of(20, seed))

    def run(layers):
        for seed in range(10):
            move_gates(show(layers, 20, seed, labels_of(20, seed)), labels_of(20, seed))

    threads = [threading.Thread(target=run, args=(layers,)) for layers in zoos]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for layers in zoos:
        assert_same_state(layers, expected)
