import logging
import math

import pytest
import torch
from torch import nn

from grotta.methods import create, load


def probabilities(row):
    return row.exp() / row.exp().sum()


def entropy_of(p):
    return -(p * p.log()).sum()


def cosine(a, b):
    return float((a * b).sum() / ((a * a).sum().sqrt() * (b * b).sum().sqrt()))


class SlowEATA:
    """Sample by sample, as the paper's algorithm says."""

    def __init__(self, by_hand, net, margin, redundancy, lr, beta=0.0, fisher=None):
        self.by_hand, self.limit = by_hand, margin * math.log(net.head.out_features)
        self.redundancy, self.beta, self.fisher, self.mean = redundancy, beta, fisher, None
        self.weights, self.adam = by_hand.leaf_weights(net), by_hand.Adam(lr)
        self.start = {name: self.weights[name].detach().clone() for name in by_hand.affine}
        self.counts = []

    def __call__(self, x):
        logits, _ = self.by_hand.forward(self.weights, x)
        kept = []
        for row in logits:
            p = probabilities(row)
            redundant = self.mean is not None and abs(cosine(self.mean, p.detach())) >= self.redundancy
            if entropy_of(p) < self.limit and not redundant:
                kept.append(p)
        self.counts.append((len(kept), len(x)))
        self.loss = None
        if kept:
            loss = sum(math.exp(self.limit - entropy_of(p).item()) * entropy_of(p) for p in kept) / len(kept)
            if self.fisher is not None:
                for name in self.by_hand.affine:
                    apart = self.weights[name] - self.start[name]
                    loss = loss + self.beta * (self.fisher[name] * apart**2).sum()
            new = sum(p.detach() for p in kept) / len(kept)
            self.mean = new if self.mean is None else 0.9 * self.mean + 0.1 * new
            self.adam.step(self.weights, loss, self.by_hand.affine)
            self.loss = loss.item()
        return logits.softmax(1).detach()


def follow(by_hand, adapter, slow, batches=4):
    for step in range(batches):
        x = by_hand.images(12, seed=step) * torch.linspace(0.2, 1, 12)[:, None, None, None]
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-9)
        assert adapter.last.adapted == (slow.loss is not None)
        assert adapter.last.loss == (None if slow.loss is None else pytest.approx(slow.loss, abs=1e-9))
        by_hand.assert_same(adapter.student, slow.weights, by_hand.affine, atol=1e-9)


def test_every_step_is_that_of_a_slow_loop_over_samples(by_hand):
    net = by_hand.net()
    slow = SlowEATA(by_hand, net, margin=0.5, redundancy=0.97, lr=0.01)
    follow(by_hand, create("eata", net, margin=0.5, redundancy=0.97, lr=0.01), slow)
    assert any(0 < kept < size for kept, size in slow.counts)


def test_the_fisher_information_holds_the_parameters_that_the_sources_answers_depend_on(by_hand):
    net = by_hand.net()
    adapter = create("eata", net, margin=0.9, redundancy=1.0, lr=0.01, beta=50.0)
    clean = by_hand.images(20, seed=99)
    adapter.calibrate(clean, batch_size=8)
    weights = by_hand.leaf_weights(net)
    fisher = {name: torch.zeros_like(weights[name]) for name in by_hand.affine}
    for part in (clean[:8], clean[8:16], clean[16:]):
        logits, _ = by_hand.forward(weights, part)
        loss = -sum(probabilities(row).max().log() for row in logits) / len(logits)
        for name, g in zip(by_hand.affine, torch.autograd.grad(loss, [weights[n] for n in by_hand.affine])):
            fisher[name] += g**2 / 3
    torch.testing.assert_close(adapter.fisher, torch.cat([fisher[name] for name in by_hand.affine]))
    follow(by_hand, adapter, SlowEATA(by_hand, net, 0.9, 1.0, 0.01, beta=50.0, fisher=fisher))


def test_calibration_outlives_a_reset_and_a_file(by_hand, tmp_path):
    net = by_hand.net()
    adapter = create("eata", net)
    adapter.calibrate(by_hand.images(20))
    fisher = adapter.fisher.clone()
    assert fisher.any()
    adapter.reset()
    assert adapter.fisher.equal(fisher)
    adapter.save(tmp_path / "eata.safetensors")
    loaded = load(tmp_path / "eata.safetensors", net)
    loaded.reset()
    assert loaded.fisher.equal(fisher)


def test_the_log_says_once_that_nothing_holds_it_near_the_source(by_hand, caplog):
    with caplog.at_level(logging.WARNING, "grotta"):
        adapter = create("eata", by_hand.net())
        adapter(by_hand.images(4))
        adapter(by_hand.images(4))
        calibrated = create("eata", by_hand.net())
        calibrated.calibrate(by_hand.images(8))
        calibrated(by_hand.images(4))
    assert [record.message for record in caplog.records] == [
        "eata: no clean images were given to calibrate(): nothing holds it near the source"
    ]


def test_nothing_kept_is_nothing_learned(by_hand):
    adapter = create("eata", by_hand.net(), margin=0.0)
    before = adapter.state_dict()
    adapter(by_hand.images(6))
    assert adapter.last.adapted is False
    assert adapter.last.loss is None
    after = adapter.state_dict()
    assert all(after[key].equal(before[key]) for key in before if key != "step")


@pytest.mark.parametrize(("classes", "published"), [(5, 0.4), (10, 0.4), (100, 0.1), (1000, 0.05)])
def test_the_redundancy_is_the_published_one_for_as_many_classes(by_hand, classes, published):
    assert create("eata", by_hand.net(classes)).redundancy == published


def test_official_sgd_has_plain_momentum(by_hand):
    adapter = create("eata", by_hand.net(), preset="official-imagenet")
    settings = adapter.optimizer.param_groups[0]
    assert (settings["lr"], settings["momentum"], settings["nesterov"]) == (2.5e-4, 0.9, False)
    assert (adapter.beta, adapter.redundancy) == (2000.0, 0.05)


@pytest.mark.parametrize("method", ["eata", "petta"])
def test_a_network_with_nothing_to_train_needs_no_calibration(method):
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    with pytest.warns(UserWarning, match="nothing to adapt"):
        adapter = create(method, net)
    adapter.calibrate(torch.rand(8, 3, 4, 4))
    assert adapter(torch.rand(2, 3, 4, 4)).shape == (2, 5)
