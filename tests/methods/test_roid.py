import math

import pytest
import torch

from grotta.augment import mild_view
from grotta.methods import create


def probabilities(row):
    return row.exp() / row.exp().sum()


def cross_entropy(p, row):
    return -(p * (row - row.exp().sum().log())).sum()


def scaled(values):
    return [(v - min(values)) / (max(values) - min(values)) if max(values) > min(values) else 0.0 for v in values]


class SlowROID:
    def __init__(self, by_hand, net, lr, seed, ensemble):
        self.by_hand, self.classes, self.ensemble = by_hand, net.head.out_features, ensemble
        self.weights, self.adam = by_hand.leaf_weights(net), by_hand.Adam(lr)
        self.start = {name: self.weights[name].detach().clone() for name in by_hand.affine}
        self.mean = torch.full((self.classes,), 1 / self.classes, dtype=torch.float64)
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x):
        logits, _ = self.by_hand.forward(self.weights, x)
        probs = [probabilities(row) for row in logits]
        diversity, certainty = [], []
        for p in probs:
            p = p.detach()
            cosine = (p * self.mean).sum() / ((p * p).sum() * (self.mean * self.mean).sum()).sqrt()
            diversity.append(1 - float(cosine))
            certainty.append(float((p * p.log()).sum()))
        diversity, certainty = scaled(diversity), scaled(certainty)
        kept = [i for i, d in enumerate(diversity) if not d < sum(diversity) / len(diversity)]
        self.kept = (len(kept), len(x))
        self.mean = 0.9 * self.mean + 0.1 * sum(p.detach() for p in probs) / len(probs)
        seen, _ = self.by_hand.forward(self.weights, mild_view(x[kept], self.generator))
        loss = 0.0
        for i, view in zip(kept, seen):
            weight = math.exp(3 * diversity[i] * certainty[i])
            clipped = probs[i].clamp(max=0.99)
            ratio = -sum(c * (c / (1 - c) + 1e-5).log() for c in clipped)
            symmetric = cross_entropy(probs[i], view) / 2 + cross_entropy(probabilities(view), logits[i]) / 2
            loss = loss + weight * (ratio + symmetric) / len(x)
        self.adam.step(self.weights, loss, self.by_hand.affine)
        for name in self.by_hand.affine:
            mixed = (1 - self.ensemble) * self.weights[name] + self.ensemble * self.start[name]
            self.weights[name] = mixed.detach().requires_grad_()
        self.loss = loss.item()
        prior = sum(p.detach() for p in probs) / len(probs)
        smooth = max(1 / len(x), 1 / self.classes) / float(prior.max())
        corrected = [row.detach() * (prior + smooth) / (1 + smooth * self.classes) for row in logits]
        return torch.stack([probabilities(row) for row in corrected])


def test_every_step_is_that_of_a_slow_loop(by_hand):
    net = by_hand.net()
    slow = SlowROID(by_hand, net, lr=0.01, seed=7, ensemble=0.1)
    adapter = create("roid", net, lr=0.01, seed=7, ensemble=0.1)
    for step, size in enumerate((9, 1, 16, 5)):
        x = by_hand.images(size, seed=step) * torch.linspace(0.2, 1, size)[:, None, None, None]
        torch.testing.assert_close(adapter(x), slow(x), rtol=0, atol=1e-9)
        assert adapter.last.loss == pytest.approx(slow.loss, abs=1e-9)
        by_hand.assert_same(adapter.student, slow.weights, by_hand.affine, atol=1e-9)
        assert size == 1 or 0 < slow.kept[0] < size


def test_the_second_pass_is_on_the_diverse_samples_alone(by_hand):
    adapter = create("roid", by_hand.net())
    sizes = []
    adapter.student.register_forward_pre_hook(lambda _, args: sizes.append(len(args[0])))
    adapter(by_hand.images(16))
    assert sizes[0] == 16
    assert 0 < sizes[1] < 16
    assert len(sizes) == 2


def test_the_prior_is_corrected_before_any_output_adaptation_and_in_predict(by_hand):
    x = by_hand.images(8)
    adapter = create("roid", by_hand.net())
    tent = create("tent", by_hand.net())
    predicted = adapter.predict(x)
    assert not torch.allclose(predicted, tent.predict(x))
    assert predicted.equal(adapter(x))
