import math

import pytest
import torch
from torch import nn

from grotta.methods import create
from grotta.methods.last_stage import without_last_stage


def entropy_of(row):
    p = row.exp() / row.exp().sum()
    return -(p * p.log()).sum()


class SlowSAR:
    def __init__(self, by_hand, net, margin, rho, collapse, lr):
        self.by_hand, self.limit = by_hand, margin * math.log(net.head.out_features)
        self.net, self.rho, self.collapse, self.lr = net, rho, collapse, lr
        self.counts, self.resets = [], 0
        self.begin()

    def begin(self):
        self.weights, self.adam, self.mean = self.by_hand.leaf_weights(self.net), self.by_hand.Adam(self.lr), None

    def __call__(self, x):
        names = self.by_hand.affine
        logits, _ = self.by_hand.forward(self.weights, x)
        first = [i for i, row in enumerate(logits) if entropy_of(row) < self.limit]
        self.loss, second = None, []
        if first:
            loss = sum(entropy_of(logits[i]) for i in first) / len(first)
            gradients = torch.autograd.grad(loss, [self.weights[name] for name in names])
            norm = math.sqrt(sum((g * g).sum().item() for g in gradients))
            climbed = dict(self.weights)
            for name, g in zip(names, gradients):
                climbed[name] = (self.weights[name] + self.rho * g / (norm + 1e-12)).detach().requires_grad_()
            there, _ = self.by_hand.forward(climbed, x)
            second = [i for i in first if entropy_of(there[i]) < self.limit]
        self.counts.append((len(x), len(first), len(second)))
        if second:
            loss = sum(entropy_of(there[i]) for i in second) / len(second)
            self.loss = loss.item()
            gradients = torch.autograd.grad(loss, [climbed[name] for name in names])
            # Adam by hand differentiates what it is given: a plane with this gradient
            plane = sum((self.weights[name] * g).sum() for name, g in zip(names, gradients))
            self.adam.step(self.weights, plane, names)
            self.mean = self.loss if self.mean is None else 0.9 * self.mean + 0.1 * self.loss
            if self.mean < self.collapse:
                self.begin()
                self.resets += 1
        return logits.softmax(1).detach()


@pytest.mark.parametrize("collapse", [0.0, 0.5])
def test_every_step_is_that_of_a_slow_loop(by_hand, collapse):
    """Outputs, losses and parameters, through both filters, the climb and the new beginnings."""
    net = by_hand.net()
    slow = SlowSAR(by_hand, net, margin=0.5, rho=0.3, collapse=collapse, lr=0.02)
    adapter = create("sar", net, margin=0.5, rho=0.3, collapse=collapse, lr=0.02)
    for step in range(6):
        x = by_hand.images(14, seed=step) * torch.linspace(0.1, 1, 14)[:, None, None, None]
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-8)
        assert adapter.last.loss == pytest.approx(slow.loss, abs=1e-8)
        by_hand.assert_same(adapter.student, slow.weights, by_hand.affine, atol=1e-8)
    assert any(size > first > second > 0 for size, first, second in slow.counts)
    assert (slow.resets > 0) == (collapse > 0)


def test_two_passes_and_none_where_nothing_is_kept(by_hand):
    passes = []
    for margin in (1.0, 0.0):
        adapter = create("sar", by_hand.net(), margin=margin)
        adapter.student.register_forward_hook(lambda *_: passes.append(1))
        before = adapter.state_dict()
        probs = adapter(by_hand.images(5))
        assert probs.isfinite().all()
        after = adapter.state_dict()
        unchanged = all(after[key].equal(before[key]) for key in before if key != "step")
        assert unchanged == (margin == 0.0) == (not adapter.last.adapted)
    assert len(passes) == 2 + 1


def test_official_settings_are_sgd_with_plain_momentum(by_hand):
    settings = create("sar", by_hand.net(), preset="official").optimizer.param_groups[0]
    assert (settings["lr"], settings["momentum"], settings["nesterov"]) == (2.5e-4, 0.9, False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp = nn.LayerNorm(4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4)


class Transformer(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.patch_norm = nn.LayerNorm(4)
        self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(4), nn.Linear(4, 2)


@pytest.mark.parametrize(("depth", "skipped"), [(12, {9, 10, 11}), (24, {21, 22, 23}), (6, {4, 5}), (4, {3})])
def test_the_last_stage_of_a_transformer_is_its_last_blocks_and_the_norm_after_them(depth, skipped):
    net = Transformer(depth)
    affine = {name: p for name, p in net.named_parameters() if "norm" in name}
    kept = without_last_stage(net, affine)
    assert {name for name in affine if not affine[name].requires_grad} == affine.keys() - kept.keys()
    assert {int(name.split(".")[1]) for name in affine.keys() - kept.keys() if "blocks" in name} == skipped
    assert "norm.weight" not in kept
    assert "patch_norm.weight" in kept
    assert "blocks.0.norm1.bias" in kept


def test_a_network_that_is_all_last_stage_is_trained_whole():
    net = nn.ModuleDict({"layer4": nn.BatchNorm2d(3)})
    affine = dict(net.named_parameters())
    assert without_last_stage(net, affine) == affine
    assert all(p.requires_grad for p in affine.values())


def test_a_network_with_group_normalisation_is_learned_in_channels_last():
    """In torch 2.13 the process dies if the gradient of the input of its first norm layer is left out."""
    torch.manual_seed(0)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    body = [layer for _ in range(6) for layer in (nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(8, 16), nn.ReLU())]
    model = nn.Sequential(nn.Conv2d(3, 16, 3), *body, pool, nn.Linear(16, 5))
    adapter = create("sar", model, margin=1.0)
    adapter(torch.rand(64, 3, 32, 32))
    assert adapter.last.adapted
