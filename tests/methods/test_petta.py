import importlib.util
import logging
import math
from pathlib import Path

import pytest
import torch

from grotta.augment import strong_view
from grotta.methods import create, load

_spec = importlib.util.spec_from_file_location("slow_rotta", Path(__file__).with_name("test_rotta.py"))
slow_rotta = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(slow_rotta)


def cross_entropy(target, logits):
    return sum(-(t.softmax(0) * s.log_softmax(0)).sum() for t, s in zip(target, logits)) / len(logits)


class SlowPeTTA:
    def __init__(self, by_hand, net, means, variances, capacity, alpha, nu, lr, lam_0, seed, loss="sce"):
        self.by_hand, self.alpha, self.nu, self.lam_0, self.loss_kind = by_hand, alpha, nu, lam_0, loss
        self.teacher, self.student, self.source = (by_hand.leaf_weights(net) for _ in range(3))
        self.start = {name: self.student[name].detach().clone() for name in by_hand.affine}
        self.memory = slow_rotta.SlowMemory(capacity, net.head.out_features)
        self.means, self.variances = means, variances
        self.tracked = {k: mean.clone() for k, mean in means.items()}
        self.adam, self.generator = by_hand.Adam(lr), torch.Generator().manual_seed(seed)

    def __call__(self, x):
        still = slow_rotta.robust_norm_by_hand(self.alpha, tracking=False)
        logits, features = self.by_hand.forward(self.teacher, x, still)
        probs = logits.softmax(1).detach()
        for image, p in zip(x, probs):
            self.memory.offer(image, int(p.argmax()), -sum(v * math.log(v + 1e-6) for v in p.tolist()))
        labels = probs.argmax(1).tolist()
        terms = []
        for k in sorted(set(labels)):
            if k in self.means:
                terms += (((self.tracked[k] - self.means[k]) ** 2) / (self.variances[k] + 1e-6)).tolist()
        self.divergence = 1 - math.exp(-sum(terms) / len(terms)) if terms else 0.0
        for k in sorted(set(labels)):
            if k in self.means:
                now = features.detach()[[i for i, label in enumerate(labels) if label == k]].mean(0)
                self.tracked[k] = 0.95 * self.tracked[k] + 0.05 * now
        self.update()
        return probs

    def update(self):
        images = torch.stack(self.memory.contents()[0])
        tracking = slow_rotta.robust_norm_by_hand(self.alpha, tracking=True)
        forward, names = self.by_hand.forward, self.by_hand.affine
        teacher = forward(self.teacher, images, tracking)[0].detach()
        student = forward(self.student, images, tracking)[0]
        source = forward(self.source, images, tracking)[0].detach()
        strong = forward(self.student, strong_view(images, self.generator), tracking)[0]
        if self.loss_kind == "sce":
            loss = cross_entropy(teacher, student) + cross_entropy(student, teacher)
            loss = (loss + cross_entropy(teacher, strong) + cross_entropy(strong, teacher)) / 4
        else:
            loss = cross_entropy(teacher, strong)
        cosines = []
        for name in names:
            w, start = self.student[name], self.start[name]
            cosines.append((w * start).sum() / ((w**2).sum() * (start**2).sum()).sqrt())
        loss = loss - self.lam_0 * self.divergence * sum(cosines) / len(cosines) + cross_entropy(source, strong)
        self.adam.step(self.student, loss, names)
        rate = self.nu * (1 - self.divergence)
        for name in names:
            self.teacher[name] = ((1 - rate) * self.teacher[name] + rate * self.student[name]).detach()
        self.loss = loss.item()


def class_statistics(by_hand, net, clean):
    logits, features = by_hand.forward(
        by_hand.leaf_weights(net), clean, slow_rotta.robust_norm_by_hand(0.0, tracking=False)
    )
    labels, features = logits.argmax(1).tolist(), features.detach()
    means, variances = {}, {}
    for k in set(labels):
        mine = features[[i for i, label in enumerate(labels) if label == k]]
        if len(mine) > 1:
            means[k] = mine.mean(0)
            variances[k] = ((mine - means[k]) ** 2).sum(0) / (len(mine) - 1)
    return means, variances


def graded(by_hand, n, seed):
    images = by_hand.images(n, seed=seed) * torch.linspace(0.2, 1, n)[:, None, None, None]
    return (images * 256).round() / 256


@pytest.mark.parametrize("loss", ["sce", "ce"])
def test_every_step_is_that_of_a_slow_loop(by_hand, loss):
    net = by_hand.net()
    options = {"capacity": 12, "alpha": 0.1, "nu": 0.2, "lr": 0.02, "lam_0": 10.0, "seed": 2, "loss": loss}
    clean = graded(by_hand, 60, seed=50)
    slow = SlowPeTTA(by_hand, net, *class_statistics(by_hand, net, clean), **options)
    adapter = create("petta", net, reference=1000, **options)
    adapter.calibrate(clean, batch_size=13)
    divergences = []
    for step, size in enumerate((5, 20, 1, 33)):
        x = graded(by_hand, size, seed=step)
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-8)
        assert adapter.last.loss == pytest.approx(slow.loss, abs=1e-8)
        for name in ("student", "teacher", "source"):
            weights = getattr(slow, name)
            by_hand.assert_same(getattr(adapter, name), weights, [*by_hand.affine, *slow_rotta.statistics], atol=1e-8)
        for k, mean in slow.tracked.items():
            torch.testing.assert_close(adapter.class_mean[k], mean)
        divergences.append(slow.divergence)
    assert divergences[0] == 0
    assert max(divergences) > 1e-4


def test_without_clean_images_the_first_samples_of_a_class_stand_in(by_hand, caplog):
    net = by_hand.net()
    adapter = create("petta", net, reference=4)
    with caplog.at_level(logging.WARNING, "grotta"):
        gathered = {}
        for step in range(3):
            x = graded(by_hand, 10, seed=step)
            pending = adapter.answer(x)[1]
            features, labels = pending.prediction.features, pending.prediction.logits.argmax(1).tolist()
            for k in set(labels):
                if len(gathered.get(k, [])) < 4:
                    gathered.setdefault(k, []).extend(features[[i for i, y in enumerate(labels) if y == k]])
            adapter.learn_from(pending)
            for k, rows in gathered.items():
                rows = torch.stack(rows)
                assert int(adapter.source_count[k]) == len(rows)
                torch.testing.assert_close(adapter.source_mean[k], rows.mean(0))
                if len(rows) > 1:
                    torch.testing.assert_close(adapter.source_var[k], rows.var(0))
    assert max(len(rows) for rows in gathered.values()) >= 4
    assert [record.message for record in caplog.records] == [
        "petta: no clean images were given to calibrate(): the first predictions stand in for them"
    ]


def test_calibration_outlives_a_reset_and_a_file_and_what_stood_in_does_not(by_hand, tmp_path):
    net = by_hand.net()
    adapter = create("petta", net)
    adapter(by_hand.images(8))
    assert adapter.source_count.any()
    adapter.reset()
    assert not adapter.source_count.any()
    adapter.calibrate(graded(by_hand, 60, seed=50))
    kept = {name: getattr(adapter, name).clone() for name in ("source_count", "source_mean", "source_var")}
    adapter(by_hand.images(8))
    adapter.save(tmp_path / "petta.safetensors")
    loaded = load(tmp_path / "petta.safetensors", net)
    for twin in (adapter, loaded):
        twin.reset()
        assert all(getattr(twin, name).equal(value) for name, value in kept.items())
        assert twin.class_mean.equal(twin.source_mean)
