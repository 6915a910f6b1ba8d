import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grotta.nn import GatedBN1d, GatedBN2d, move_gates, observing
from grotta.nn import gate as G
from grotta.nn.gated_bn import MOST_CLASSES
from grotta.nn.shown import shown_by

CHANNELS = 3


def a_layer(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    bn = nn.BatchNorm2d(CHANNELS).to(dtype)
    with torch.no_grad():
        for tensor in (bn.weight, bn.bias, bn.running_mean):
            tensor.copy_(torch.randn(CHANNELS, generator=generator))
        bn.running_var.copy_(torch.rand(CHANNELS, generator=generator) + 0.5)
    return GatedBN2d.from_bn(bn), bn.eval()


def some(n, shift=0.0, *, scale=1.0, seed=0, dtype=torch.float64, spread=0.3):
    """Images whose own means differ by ``spread``."""
    generator = torch.Generator().manual_seed(seed)
    own = spread * torch.randn(n, CHANNELS, 1, 1, generator=generator, dtype=torch.float64)
    return (scale * torch.randn(n, CHANNELS, 4, 4, generator=generator, dtype=torch.float64) + own + shift).to(dtype)


def show(layer, x):
    """Normalise a batch as a method does, and move on."""
    with observing() as seen:
        y = layer(x)
    move_gates(seen)
    return y


class FilterByHand:
    """The gate in plain Python numbers; images wait until there are sixteen."""

    def __init__(self, layer):
        self.mean, self.var = layer.running_mean.tolist(), layer.running_var.tolist()
        self.uncertainty, self.noise, self.eps = 0.0, 0.0, layer.eps
        self.waiting = []

    def see(self, x):
        self.waiting += list(x)
        if len(self.waiting) >= 16:
            self.move(torch.stack(self.waiting))
            self.waiting = []

    def move(self, x):
        n = len(x)
        values = [x[:, c].flatten().tolist() for c in range(CHANNELS)]
        mean = [sum(v) / len(v) for v in values]
        var = [sum((a - m) ** 2 for a in v) / len(v) for v, m in zip(values, mean)]
        spread = 0.0
        if n > 1:
            for c in range(CHANNELS):
                own = [image[c].mean().item() for image in x]
                middle = sum(own) / n
                spread += sum((o - middle) ** 2 for o in own) / (n - 1) / (self.var[c] + self.eps) / CHANNELS
        surprise = 0.0
        for c in range(CHANNELS):
            scale = self.var[c] + self.eps
            surprise += (mean[c] - self.mean[c]) ** 2 / scale / CHANNELS
            surprise += 0.5 * math.log((var[c] + self.eps) / scale) ** 2 / CHANNELS
        if first := self.noise == 0:
            self.noise = max(G.FIRST_NOISE * (spread if n > 1 else surprise), 1e-6 * n)
            self.uncertainty = surprise
        noise = self.noise / n
        if not first and surprise > G.JUMP * (self.uncertainty + noise):
            self.uncertainty = max(surprise - noise, self.uncertainty)
        gain = min(max(self.uncertainty / (self.uncertainty + noise), 0), G.MOST)
        share = n / G.SAMPLES
        for c in range(CHANNELS):
            far = min((mean[c] - self.mean[c]) ** 2, G.CLIP * noise * (self.var[c] + self.eps))
            self.var[c] += gain * (var[c] + (1 - gain) * far - self.var[c])
            self.mean[c] += gain * (mean[c] - self.mean[c])
        self.uncertainty = (1 - gain) * self.uncertainty + G.DRIFT * share * self.noise / G.SAMPLES
        if not first:
            pace = 1 - (1 - G.LEARNS_NOISE) ** share
            self.noise += pace * (min(surprise, G.CLIP * noise) * n - self.noise)
        self.noise = max(self.noise, 0.5 * spread)


@pytest.mark.parametrize("sizes", [(16, 20, 64, 32), (8, 8, 8, 8), (1,) * 40, (64, 3, 1, 20), (15, 64, 5, 11, 7)])
def test_statistics_move_as_in_the_loop(sizes):
    layer, _ = a_layer()
    by_hand = FilterByHand(layer)
    for place, n in enumerate(sizes):
        x = some(n, shift=2.0 * (place // 2), seed=place)
        show(layer, x)
        by_hand.see(x)
        torch.testing.assert_close(layer.running_mean, torch.tensor(by_hand.mean, dtype=torch.float64))
        torch.testing.assert_close(layer.running_var, torch.tensor(by_hand.var, dtype=torch.float64))
        assert layer.uncertainty.item() == pytest.approx(by_hand.uncertainty)
        assert layer.noise.item() == pytest.approx(by_hand.noise)
        assert int(layer.waiting_images) == len(by_hand.waiting)


@pytest.mark.parametrize("sizes", [(1,) * 16, (5, 11), (3, 3, 10), (15, 1)])
def test_small_batches_move_the_statistics_as_one_batch_of_their_images(sizes):
    """At first, and again when they have moved before."""
    apart, together = a_layer()[0], a_layer()[0]
    for seed, shift in enumerate((1.0, 1.5, 6.0)):
        images = some(16, shift, seed=seed)
        for x in images.split(sizes):
            show(apart, x)
        show(together, images)
        torch.testing.assert_close(apart.gate, together.gate, rtol=1e-10, atol=1e-12)


def test_nothing_moves_while_images_wait():
    layer, _ = a_layer()
    before = copy.deepcopy(layer.gate)
    for n in (8, 6, 1):
        show(layer, some(n, 5.0, seed=n))
        assert all(torch.equal(a, b) for a, b in zip(layer.gate, before))
    show(layer, some(1, 5.0))
    assert not torch.equal(layer.running_mean, before.mean)


def test_a_small_batch_is_normalised_as_it_and_those_waiting_would_move_the_statistics():
    layer, _ = a_layer()
    by_hand = FilterByHand(layer)
    x = some(13, 1.0)
    show(layer, x[:10])
    with observing():
        y = layer(x[10:])
    by_hand.move(x)
    mean, var = (torch.tensor(v, dtype=torch.float64) for v in (by_hand.mean, by_hand.var))
    torch.testing.assert_close(y, F.batch_norm(x[10:], mean, var, layer.weight, layer.bias, False, 0.0, layer.eps))


def test_two_observations_pooled_are_one_of_all_images():
    x, labels = some(12, spread=2.0), some(12)[:, 0].softmax(2)[:, 0]
    x[:5] += 3
    parts = [shown_by(x[p], x.dtype).observation(labels[p].mean(0)) for p in (slice(5), slice(5, 12))]
    whole = G.Observation(
        x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0), x.mean((2, 3)).var(0, correction=0), 12, labels.mean(0)
    )
    torch.testing.assert_close(G.pooled(*parts), whole)
    assert G.pooled(parts[0], parts[1]._replace(mix=None)).mix is None


@pytest.mark.parametrize("affine", [True, False])
def test_where_it_is_trained_the_gradient_is_that_of_training_mode(affine):
    """The value is that of the statistics as they are; the gradient that of weight gamma s_b / s_g, by autograd."""
    layer, _ = a_layer()
    if not affine:
        layer.weight = layer.bias = None
    show(layer, some(32, 0.5, seed=3))
    x, along = some(6, 1.0, scale=2.0).requires_grad_(), some(6, seed=8)
    with torch.no_grad():
        expected = layer(x)
    y = layer(x)
    torch.testing.assert_close(y, expected)

    mean, var = (v.view(1, -1, 1, 1) for v in (x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)))
    s_b, s_g = (var + layer.eps).sqrt(), (layer.running_var + layer.eps).sqrt().view(1, -1, 1, 1)
    still = (x - mean) / s_b * s_b.detach() + mean.detach()
    plain = (still - layer.running_mean.view(1, -1, 1, 1)) / s_g
    trained = [x, *layer.parameters()]
    if affine:
        plain = plain * layer.weight.view(1, -1, 1, 1) + layer.bias.view(1, -1, 1, 1)
    torch.testing.assert_close(plain, expected)
    gradients = torch.autograd.grad((y * along).sum(), trained)
    torch.testing.assert_close(gradients, torch.autograd.grad((plain * along).sum(), trained))

    scale = (s_b / s_g).detach().flatten() * (layer.weight.detach() if affine else 1)
    training = F.batch_norm(x, None, None, scale, None, True, 0.0, layer.eps)
    torch.testing.assert_close(gradients[0], *torch.autograd.grad((training * along).sum(), x))


def test_training_moves_no_statistics():
    layer, _ = a_layer()
    show(layer, some(7))
    before = copy.deepcopy(layer.state_dict())
    layer(some(64, 3.0)).sum().backward()
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


def test_a_batch_is_normalised_by_the_statistics_as_it_moves_them():
    layer, bn = a_layer()
    x = some(16, 1.0)
    torch.testing.assert_close(layer(x), bn(x))  # nobody observes: the source's
    y = show(layer, x)
    mean, var = layer.running_mean, layer.running_var
    assert not torch.allclose(mean, bn.running_mean)
    torch.testing.assert_close(y, F.batch_norm(x, mean, var, layer.weight, layer.bias, False, 0.0, layer.eps))
    torch.testing.assert_close(layer(x), y)


def test_nothing_moves_until_it_is_told_to():
    layer, _ = a_layer()
    before = copy.deepcopy(layer.state_dict())
    with observing() as seen:
        layer(some(8, 1.0))
    assert len(seen) == 1
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


def test_a_new_domain_is_followed_at_once():
    layer, _ = a_layer()
    for seed in range(30):
        show(layer, some(64, seed=seed))
    old = layer.running_mean.clone()
    show(layer, some(64, 4.0, scale=2.0, seed=99))
    moved = (layer.running_mean - old) / 4
    assert bool((moved > 0.8).all())


def test_usual_batches_move_settled_statistics_little():
    layer, _ = a_layer()
    for seed in range(30):
        show(layer, some(64, seed=seed))
    old = layer.running_mean.clone()
    show(layer, some(64, seed=99))
    assert (layer.running_mean - old).abs().max() < 0.02


def test_where_every_batch_is_of_one_class_statistics_are_patient():
    """Class means at -0.5, 0 and 0.5, one class a batch: after a while no batch drags the statistics along."""
    layer, _ = a_layer()
    generator = torch.Generator().manual_seed(0)
    means = []
    for seed in range(120):
        kind = int(torch.randint(3, (), generator=generator)) - 1
        show(layer, some(32, 0.5 * kind, seed=seed))
        means.append(layer.running_mean.mean().item())
    late = means[60:]
    assert max(late) - min(late) < 0.3
    assert abs(sum(late) / len(late)) < 0.2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_images_and_types(dtype):
    layer, _ = a_layer(dtype)
    for seed in range(20):
        y = show(layer, some(1, seed=seed, dtype=dtype))
        assert y.dtype == dtype
        assert y.isfinite().all()
    assert layer.running_mean.dtype == dtype


def test_images_one_by_one_show_how_far_they_lie_apart():
    """The variance of one image lacks the spread between images, which those that wait together show."""
    single, together = a_layer()[0], a_layer()[0]
    images = some(512, shift=1.0, spread=1.5)
    for x in images.split(1):
        show(single, x)
    for x in images.split(64):
        show(together, x)
    torch.testing.assert_close(single.running_var, together.running_var, rtol=0.1, atol=0)
    assert (single.running_var > 2).all()  # of single images: 1; between them: 2.25


def test_half_precision_features_move_full_precision_statistics():
    layer, _ = a_layer(torch.float32)
    exact, _ = a_layer(torch.float32)
    x = some(16, 1.0, dtype=torch.bfloat16)
    move_gates([(layer, shown_by(x, torch.float32))])
    show(exact, x.float())
    assert layer.running_mean.dtype == torch.float32
    torch.testing.assert_close(layer.running_mean, exact.running_mean, atol=2e-2, rtol=0)


def test_constant_input_is_no_trouble():
    layer, _ = a_layer()
    for _ in range(10):
        assert show(layer, torch.zeros(4, CHANNELS, 4, 4, dtype=torch.float64)).isfinite().all()
    assert all(value.isfinite().all() for value in layer.gate)


def test_copies_and_restored_states_go_on_alike():
    layer, _ = a_layer()
    for seed in range(5):
        show(layer, some(8, seed=seed))
    twin, (restored, _) = copy.deepcopy(layer), a_layer(seed=5)
    restored.load_state_dict(layer.state_dict())
    x = some(8, 1.0, seed=9)
    y = show(layer, x)
    assert torch.equal(y, show(twin, x))
    assert torch.equal(y, show(restored, x))


def test_observers_nest_and_other_shapes_are_refused():
    layer, _ = a_layer()
    with observing() as outer:
        with observing() as inner:
            layer(some(2))
        layer(some(2))
    assert (len(outer), len(inner)) == (1, 1)
    with pytest.raises(ValueError, match="must have rank 4"):
        layer(torch.zeros(2, CHANNELS, dtype=torch.float64))
    flat = GatedBN1d.from_bn(nn.BatchNorm1d(CHANNELS))
    assert show(flat, torch.randn(4, CHANNELS)).shape == (4, CHANNELS)


def two_classes(n, share, seed=0):
    """Images of which a ``share`` is of a class whose mean is higher by 2, and their labels (n, 2)."""
    second = torch.arange(n) < round(share * n)
    x = some(n, seed=seed) + 2.0 * second.double()[:, None, None, None]
    return x, torch.stack([~second, second], 1).double()


def taught(**options):
    """A layer that has seen fair batches of two classes, with and without their labels."""
    bn = a_layer()[1]
    layer = GatedBN2d.from_bn(bn, **options)
    for seed in range(40):
        x, labels = two_classes(64, 0.5, seed)
        with observing(labels) as seen:
            layer(x)
        move_gates(seen, labels)
    return layer


def test_the_offsets_of_classes_are_learned():
    layer = taught(num_classes=2)
    torch.testing.assert_close(
        layer.offsets[1] - layer.offsets[0], torch.full((3,), 2.0, dtype=torch.float64), atol=0.1, rtol=0
    )


def test_rows_that_are_parts_of_images_teach_the_offsets_of_their_images():
    """Some networks give their norm layers (B * tokens, C)."""
    images = some(8)[:, :, 0, 0]
    labels = torch.eye(4, dtype=torch.float64).repeat(2, 1)
    whole, parts = (GatedBN1d(CHANNELS, num_classes=4, dtype=torch.float64) for _ in range(2))
    for layer, x in ((whole, images), (parts, images.repeat_interleave(3, 0))):
        with observing() as seen:
            layer(x)
        layer.running_mean.zero_()
        shown = seen[0][1]._replace(mean=torch.zeros(CHANNELS, dtype=torch.float64))
        move_gates([(layer, shown)], labels)
    torch.testing.assert_close(parts.offsets, whole.offsets)
    torch.testing.assert_close(parts.offset_images, whole.offset_images)


@pytest.mark.parametrize("size", [64, 5, 1])
def test_images_of_one_class_are_not_taken_for_a_new_domain(size):
    known, unknown = taught(num_classes=2), taught()
    images, classes = two_classes(64, 1.0, seed=99)
    fair = known.running_mean.clone()
    moved = []
    for layer in (known, unknown):
        for x, labels in zip(images.split(size), classes.split(size)):
            with observing(labels) as seen:
                layer(x)
            move_gates(seen, labels)
        moved.append((layer.running_mean - fair).abs().max())
    assert moved[0] < 0.1 < 0.5 < moved[1]


def test_a_new_domain_is_followed_whatever_the_classes():
    layer = taught(num_classes=2)
    before = layer.running_mean.clone()
    x, labels = two_classes(64, 1.0, seed=99)
    with observing(labels) as seen:
        layer(x + 5)
    move_gates(seen, labels)
    assert bool(((layer.running_mean - before) > 4).all())


def test_a_rebalanced_batch_shows_what_a_fair_one_does():
    offsets = G.Offsets(torch.tensor([[-1.0], [1.0]]), torch.tensor([1e9, 1e9]))
    mix = torch.tensor([0.0, 1.0])
    seen = G.Observation(torch.tensor([1.0]), torch.tensor([0.25]), torch.tensor([0.0]), 4, mix)
    fair = G.rebalanced(seen, offsets)
    assert (fair.mean.item(), fair.var.item()) == pytest.approx((0.0, 1.25))
    unknown = seen._replace(mix=None)
    assert G.rebalanced(unknown, offsets) is unknown


def test_labels_that_say_nothing_correct_nothing():
    layer, plain = taught(num_classes=2), taught(num_classes=2)
    x, _ = two_classes(64, 1.0, seed=99)
    with observing(torch.full((64, 2), 0.5, dtype=torch.float64)):
        y = layer(x)
    with observing():
        torch.testing.assert_close(y, plain(x))


def test_many_classes_share_offsets():
    layer = GatedBN2d.from_bn(a_layer()[1], num_classes=1000)
    assert layer.offsets.shape == (MOST_CLASSES, CHANNELS)
    labels = torch.zeros(8, 1000, dtype=torch.float64)
    labels[:, 999] = 1
    with observing(labels) as seen:
        layer(some(8))
    move_gates(seen, labels)
    assert layer.offset_images.nonzero().flatten().tolist() == [999 % MOST_CLASSES]
