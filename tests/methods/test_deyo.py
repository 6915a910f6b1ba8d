import math

import pytest
import torch

from grotta.methods import create
from grotta.methods.deyo import shuffle_patches


def probabilities(row):
    return row.exp() / row.exp().sum()


def entropy_of(p):
    return -(p * p.log()).sum()


class SlowDeYO:
    def __init__(self, by_hand, net, margin, shape, lr, seed):
        self.by_hand, self.log_classes = by_hand, math.log(net.head.out_features)
        self.margin, self.shape = margin, shape
        self.weights, self.adam = by_hand.leaf_weights(net), by_hand.Adam(lr)
        self.generator = torch.Generator().manual_seed(seed)
        self.counts = []

    def __call__(self, x):
        logits, _ = self.by_hand.forward(self.weights, x)
        probs = [probabilities(row) for row in logits]
        sure = [i for i, p in enumerate(probs) if entropy_of(p) < self.margin * self.log_classes]
        self.loss, kept = None, []
        if sure:
            broken, _ = self.by_hand.forward(self.weights, shuffle_patches(x[sure], 4, self.generator))
            for i, row in zip(sure, broken):
                y = int(probs[i].argmax())
                drop = (probs[i][y] - probabilities(row)[y]).item()
                if drop > self.shape:
                    h = entropy_of(probs[i])
                    kept.append((math.exp(0.4 * self.log_classes - h.item()) + math.exp(drop)) * h)
        self.counts.append((len(x), len(sure), len(kept)))
        if kept:
            loss = sum(kept) / len(kept)
            self.loss = loss.item()
            self.adam.step(self.weights, loss, self.by_hand.affine)
        return logits.softmax(1).detach()


def test_every_step_is_that_of_a_slow_loop(by_hand):
    net = by_hand.net()
    slow = SlowDeYO(by_hand, net, margin=0.6, shape=0.0, lr=0.01, seed=4)
    adapter = create("deyo", net, margin=0.6, shape=0.0, lr=0.01, seed=4)
    for step in range(5):
        x = by_hand.images(14, seed=step) * torch.linspace(0.1, 1, 14)[:, None, None, None]
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-9)
        assert adapter.last.adapted == (slow.loss is not None)
        assert adapter.last.loss == (None if slow.loss is None else pytest.approx(slow.loss, abs=1e-9))
        by_hand.assert_same(adapter.student, slow.weights, by_hand.affine, atol=1e-9)
    assert any(size > sure > kept > 0 for size, sure, kept in slow.counts)


@pytest.mark.parametrize("options", [{"margin": 0.0}, {"margin": 1.0, "shape": 1.0}])
def test_nothing_kept_is_nothing_learned(by_hand, options):
    adapter = create("deyo", by_hand.net(), **options)
    before = adapter.state_dict()
    adapter(by_hand.images(6))
    assert adapter.last.adapted is False
    after = adapter.state_dict()
    assert all(after[key].equal(before[key]) for key in before if key.startswith("network"))


def pieces_of(image, rows, columns):
    height, width = image.shape[1] // rows, image.shape[2] // columns
    return [
        image[:, r * height : (r + 1) * height, c * width : (c + 1) * width]
        for r in range(rows)
        for c in range(columns)
    ]


def test_shuffling_moves_whole_pieces_in_another_order_for_each_image():
    images = torch.rand(3, 3, 8, 12)
    shuffled = shuffle_patches(images, 4, torch.Generator().manual_seed(0))
    orders = []
    for before, after in zip(images, shuffled):
        there = pieces_of(before, 4, 4)
        order = [next(i for i, piece in enumerate(there) if piece.equal(moved)) for moved in pieces_of(after, 4, 4)]
        assert sorted(order) == list(range(16))
        orders.append(tuple(order))
    assert len(set(orders)) == 3


def test_sides_that_are_no_multiples_are_scaled_and_small_images_have_fewer_pieces():
    generator = torch.Generator().manual_seed(0)
    assert shuffle_patches(torch.rand(2, 3, 10, 13), 4, generator).shape == (2, 3, 10, 13)
    tiny = torch.arange(6.0).view(1, 1, 2, 3)
    assert sorted(shuffle_patches(tiny, 4, generator).flatten().tolist()) == [0, 1, 2, 3, 4, 5]
