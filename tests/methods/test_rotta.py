import math

import pytest
import torch

from grotta.augment import strong_view
from grotta.methods import create

statistics = tuple(f"norm{i}.running_{s}" for i in (1, 2) for s in ("mean", "var"))


def robust_norm_by_hand(alpha, tracking, eps=1e-5):
    """RBN channel by channel; with ``tracking``, the statistics in the weights move before they are used."""

    def norm(x, name, w):
        channels = []
        for c in range(x.shape[1]):
            mean, var = (w[f"{name}.running_{statistic}"][c] for statistic in ("mean", "var"))
            if tracking:
                values = x[:, c]
                batch_mean = values.sum() / values.numel()
                batch_var = ((values - batch_mean) ** 2).sum() / values.numel()
                mean = (1 - alpha) * mean + alpha * batch_mean
                var = (1 - alpha) * var + alpha * batch_var
            channels.append((x[:, c] - mean) / (var + eps) ** 0.5 * w[f"{name}.weight"][c] + w[f"{name}.bias"][c])
            if tracking:
                for statistic, value in (("mean", mean), ("var", var)):
                    moved = w[f"{name}.running_{statistic}"].clone()
                    moved[c] = value.detach()
                    w[f"{name}.running_{statistic}"] = moved
        return torch.stack(channels, 1)

    return norm


class SlowMemory:
    """CSTU as lists of (image, uncertainty, age), one a class."""

    def __init__(self, capacity, classes):
        self.capacity, self.classes = capacity, [[] for _ in range(classes)]

    def score(self, uncertainty, age):
        return 1 / (1 + math.exp(-age / self.capacity)) + uncertainty / math.log(len(self.classes))

    def offer(self, image, label, uncertainty):
        counts = [len(items) for items in self.classes]
        if counts[label] < self.capacity / len(self.classes):
            if sum(counts) < self.capacity:
                rivals = None
            else:
                rivals = [items for items in self.classes if len(items) == max(counts)]
        else:
            rivals = [self.classes[label]]
        new = [image, uncertainty, 0]
        if rivals is None:
            self.classes[label].append(new)
        else:
            worst, home = None, None
            for items in rivals:
                for item in items:
                    if worst is None or self.score(*item[1:]) >= self.score(*worst[1:]):
                        worst, home = item, items
            if self.score(*worst[1:]) > self.score(uncertainty, 0):
                home[:] = [item for item in home if item is not worst]
                self.classes[label].append(new)
        for items in self.classes:
            for item in items:
                item[2] += 1

    def contents(self):
        items = [item for items in self.classes for item in items]
        return [item[0] for item in items], [item[2] for item in items]


class SlowRoTTA:
    def __init__(self, by_hand, net, capacity, every, seed, alpha=0.05, nu=0.001, lr=0.001):
        self.by_hand, self.alpha, self.nu, self.every, self.seen = by_hand, alpha, nu, every, 0
        self.teacher, self.student = by_hand.leaf_weights(net), by_hand.leaf_weights(net)
        self.memory = SlowMemory(capacity, net.head.out_features)
        self.adam = by_hand.Adam(lr)
        self.generator = torch.Generator().manual_seed(seed)
        self.losses = []

    def __call__(self, x):
        still = robust_norm_by_hand(self.alpha, tracking=False)
        probs = self.by_hand.forward(self.teacher, x, still)[0].softmax(1).detach()
        self.losses = []
        for image, p in zip(x, probs):
            uncertainty = -sum(v * math.log(v + 1e-6) for v in p.tolist())
            self.memory.offer(image, int(p.argmax()), uncertainty)
            self.seen += 1
            if self.seen % self.every == 0:
                self.update()
        return probs

    def update(self):
        images, ages = self.memory.contents()
        images = torch.stack(images)
        tracking = robust_norm_by_hand(self.alpha, tracking=True)
        target = self.by_hand.forward(self.teacher, images, tracking)[0].softmax(1).detach()
        logits, _ = self.by_hand.forward(self.student, strong_view(images, self.generator), tracking)
        loss = 0.0
        for t, s, age in zip(target, logits, ages):
            a = age / self.memory.capacity
            weight = math.exp(-a) / (1 + math.exp(-a))
            loss = loss - weight * (t * (s - s.exp().sum().log())).sum() / len(target)
        self.adam.step(self.student, loss, self.by_hand.affine)
        for name in self.by_hand.affine:
            self.teacher[name] = ((1 - self.nu) * self.teacher[name] + self.nu * self.student[name]).detach()
        self.losses.append(loss.item())


def test_every_step_is_that_of_a_slow_loop(by_hand):
    """Outputs, memory with ages, loss, parameters and statistics, for batches across and between the updates."""
    net = by_hand.net()
    slow = SlowRoTTA(by_hand, net, capacity=12, every=16, seed=2, alpha=0.1, nu=0.05, lr=0.01)
    adapter = create("rotta", net, capacity=12, update_every=16, seed=2, alpha=0.1, nu=0.05, lr=0.01)
    updates = 0
    for step, size in enumerate((5, 20, 1, 40, 7)):
        x = by_hand.images(size, seed=step)
        x *= torch.linspace(0.2, 1, size)[:, None, None, None]  # darker and brighter ones: several labels
        x = (x * 256).round() / 256
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-8)
        images, ages = adapter.memory.contents()
        slow_images, slow_ages = slow.memory.contents()
        assert images.double().equal(torch.stack(slow_images))
        assert ages.tolist() == slow_ages
        assert adapter.last.bank_size == len(slow_ages)
        updates += len(slow.losses)
        assert adapter.last.adapted == bool(slow.losses)
        if slow.losses:
            assert adapter.last.loss == pytest.approx(sum(slow.losses) / len(slow.losses), abs=1e-8)
        by_hand.assert_same(adapter.student, slow.student, [*by_hand.affine, *statistics], atol=1e-8)
        by_hand.assert_same(adapter.teacher, slow.teacher, [*by_hand.affine, *statistics], atol=1e-8)
    assert updates == (5 + 20 + 1 + 40 + 7) // 16
    assert sum(len(items) > 0 for items in slow.memory.classes) >= 3


def test_updates_come_every_64_samples_with_one_pass_of_each_network(by_hand):
    adapter = create("rotta", by_hand.net(dtype=torch.float32))
    passes = {"teacher": 0, "student": 0}
    for name in passes:
        getattr(adapter, name).register_forward_hook(lambda *_, name=name: passes.update({name: passes[name] + 1}))
    seen = []
    for call, size in enumerate([1] * 63 + [1, 1, 62, 1, 200, 9]):
        adapter(by_hand.images(size, seed=call, dtype=torch.float32))
        if passes["student"]:
            seen.append((call, passes["teacher"] - 1, passes["student"]))
        assert adapter.last.adapted == (passes["student"] > 0)
        passes.update(teacher=0, student=0)
    # samples seen after these calls: 64, 128, 328 (192, 256 and 320 are in that batch)
    assert seen == [(63, 1, 1), (66, 1, 1), (67, 3, 3)]


def test_the_teachers_statistics_come_from_its_own_tracking_not_from_the_student(by_hand):
    adapter = create("rotta", by_hand.net(), nu=1.0, capacity=8, update_every=8)
    adapter(by_hand.images(8))
    teacher, student = adapter.teacher.body.norm1, adapter.student.body.norm1
    assert teacher.weight.equal(student.weight)
    assert not teacher.running_mean.equal(student.running_mean)


def test_published_settings_are_the_defaults(by_hand):
    for preset in ("paper", "official"):
        adapter = create("rotta", by_hand.net(), preset=preset)
        assert (adapter.capacity, adapter.update_every, adapter.alpha, adapter.nu) == (64, 64, 0.05, 0.001)
        assert (adapter.lambda_t, adapter.lambda_u, adapter.lr) == (1.0, 1.0, 1e-3)


def test_images_without_a_strong_view_are_refused_before_anything_is_done(by_hand):
    adapter = create("rotta", by_hand.net())
    before = adapter.state_dict()
    with pytest.raises(ValueError, match="pixels"):
        adapter(by_hand.images(4, size=3))
    assert all(tensor.equal(before[key]) for key, tensor in adapter.state_dict().items())
