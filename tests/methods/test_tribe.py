import math

import pytest
import torch

from grotta.augment import strong_view
from grotta.methods import create


class Statistics:
    """Balanced normalisation of one network, channel by channel; ``labels`` let the statistics move."""

    def __init__(self, net, classes, eta, gamma):
        self.eta, self.gamma = eta, gamma
        self.mean = {n: getattr(net, n).running_mean.repeat(classes, 1) for n in ("norm1", "norm2")}
        self.var = {n: getattr(net, n).running_var.repeat(classes, 1) for n in ("norm1", "norm2")}
        self.used = {n: (getattr(net, n).running_mean, getattr(net, n).running_var) for n in ("norm1", "norm2")}
        self.labels = None

    def __call__(self, x, name, w, eps=1e-5):
        mean, var = self.used[name] if self.labels is None else self.move(x, name)
        shape = (1, -1, 1, 1)
        normal = (x - mean.view(shape)) / (var.view(shape) + eps).sqrt()
        return normal * w[f"{name}.weight"].view(shape) + w[f"{name}.bias"].view(shape)

    def move(self, x, name):
        means, variances = list(self.mean[name]), list(self.var[name])
        steps, spreads, sizes = [], [], []
        for k in sorted(set(self.labels)):
            images = x[[i for i, label in enumerate(self.labels) if label == k]]
            n = len(images)
            m = 1 / n if n > 1 / self.eta else self.eta
            apart = images - self.mean[name][k].view(1, -1, 1, 1)
            step = m * apart.mean((2, 3)).sum(0)
            spread = m * (apart**2).mean((2, 3)).sum(0) - step**2
            means[k] = means[k] + (1 - self.gamma) * step
            variances[k] = variances[k] + (1 - self.gamma) * (spread - m * n * variances[k])
            steps.append(step), spreads.append(spread), sizes.append(m * n)
        present = len(steps)
        means = [mean + self.gamma * sum(steps) / present for mean in means]
        variances = [v + self.gamma * (sum(spreads) - sum(sizes) * v) / present for v in variances]
        stacked = torch.stack(means)
        mean, var = stacked.mean(0), torch.stack(variances).mean(0) + stacked.var(0)
        self.mean[name], self.var[name] = stacked.detach(), torch.stack(variances).detach()
        self.used[name] = (mean.detach(), var.detach())
        return mean, var


class SlowTRIBE:
    def __init__(self, by_hand, net, eta, gamma, margin, lr, seed):
        self.by_hand, classes = by_hand, net.head.out_features
        self.limit = margin * math.log(classes)
        self.student, self.teacher, self.anchor = (Statistics(net, classes, eta, gamma) for _ in range(3))
        self.weights, self.source = by_hand.leaf_weights(net), by_hand.leaf_weights(net)
        self.adam, self.generator = by_hand.Adam(lr), torch.Generator().manual_seed(seed)

    def ask(self, statistics, weights, x, labels):
        statistics.labels = labels
        logits, _ = self.by_hand.forward(weights, x, statistics)
        statistics.labels = None
        return logits

    def __call__(self, x):
        answer = self.ask(self.teacher, self.weights, x, None).detach()
        labels = answer.argmax(1).tolist()
        view = strong_view(x, self.generator)
        teacher = self.ask(self.teacher, self.weights, x, labels)
        student = self.ask(self.student, self.weights, view, labels)
        anchor = self.ask(self.anchor, self.source, x, labels).detach()
        self.loss, losses = None, []
        for t, s, a in zip(teacher, student, anchor):
            p = t.softmax(0)
            if -(p * p.log()).sum() < self.limit:
                losses.append(s.exp().sum().log() - s[t.argmax()] + 0.5 * ((t - a) ** 2).mean())
        self.kept = (len(losses), len(x))
        if losses:
            loss = sum(losses) / len(losses)
            self.adam.step(self.weights, loss, self.by_hand.affine)
            self.loss = loss.item()
        return answer.softmax(1)


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_every_step_is_that_of_a_slow_loop(by_hand, gamma):
    net = by_hand.net()
    options = {"eta": 0.2, "gamma": gamma, "margin": 0.6, "lr": 0.01, "seed": 5}
    slow, adapter = SlowTRIBE(by_hand, net, **options), create("tribe", net, **options)
    kept = []
    for step, size in enumerate((12, 1, 9, 16)):
        x = by_hand.images(size, seed=step) * torch.linspace(0.1, 1, size)[:, None, None, None]
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-9)
        assert adapter.last.loss == (None if slow.loss is None else pytest.approx(slow.loss, abs=1e-9))
        by_hand.assert_same(adapter.student, slow.weights, by_hand.affine, atol=1e-9)
        for network, statistics in (
            (adapter.student, slow.student),
            (adapter.teacher, slow.teacher),
            (adapter.anchor, slow.anchor),
        ):
            torch.testing.assert_close(network.body.norm2.class_mean, statistics.mean["norm2"])
            torch.testing.assert_close(network.body.norm2.class_var, statistics.var["norm2"])
        kept.append(slow.kept)
    assert any(0 < some < size for some, size in kept)


def test_teacher_and_student_have_the_same_parameters_and_the_anchor_the_sources(by_hand):
    net = by_hand.net()
    adapter = create("tribe", net, margin=1.0, lr=0.1)
    adapter(by_hand.images(8))
    for name in by_hand.affine:
        student, teacher = (n.get_parameter(f"body.{name}") for n in (adapter.student, adapter.teacher))
        assert student is teacher
        assert not student.equal(net.get_parameter(name))
        assert adapter.anchor.get_parameter(f"body.{name}").equal(net.get_parameter(name))


def test_statistics_move_even_where_no_sample_is_sure(by_hand):
    adapter = create("tribe", by_hand.net(), margin=0.0)
    adapter(by_hand.images(8))
    assert adapter.last.adapted
    assert adapter.last.loss is None
    assert not adapter.teacher.body.norm1.running_mean.equal(by_hand.net().norm1.running_mean)


@pytest.mark.parametrize(
    ("classes", "published"), [(10, (0.01, 0.0, 0.05)), (100, (0.05, 0.1, 0.2)), (1000, (0.5, 0.5, 0.4))]
)
def test_settings_are_the_published_ones_for_as_many_classes(by_hand, classes, published):
    adapter = create("tribe", by_hand.net(classes))
    assert (adapter.eta, adapter.gamma, adapter.margin) == published
