import math

import pytest
import torch

from grotta.functional import softmax_entropy
from grotta.functional.information import EVEN, UNEVEN, evenness, information_loss


def loss_by_hand(logits):
    """Mean over images and classes of -p log(p / mean p), with the sign turned, in plain Python numbers."""
    rows = []
    for row in logits.tolist():
        total = sum(math.exp(value - max(row)) for value in row)
        rows.append([math.exp(value - max(row)) / total for value in row])
    told = 0.0
    for c in range(len(rows[0])):
        mean = sum(row[c] for row in rows) / len(rows)
        told += sum(row[c] * math.log(row[c] / mean) for row in rows) / len(rows)
    return -told


def some_logits(images=7, classes=4, seed=0):
    return 2 * torch.randn(images, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("images", "classes"), [(7, 4), (1, 3), (64, 10), (3, 100)])
def test_the_loss_is_minus_the_mutual_information(images, classes):
    logits = some_logits(images, classes)
    assert information_loss(logits).item() == pytest.approx(loss_by_hand(logits), abs=1e-12)


def test_it_lies_between_nothing_and_the_logarithm_of_the_classes():
    """One image, or the same of all, tells nothing; sure answers, each as often, tell log C."""
    assert information_loss(some_logits(1)).item() == pytest.approx(0)
    assert information_loss(some_logits(1).repeat(5, 1)).item() == pytest.approx(0)
    sure = 50 * torch.eye(4, dtype=torch.float64).repeat(3, 1)
    assert information_loss(sure).item() == pytest.approx(-math.log(4))


def test_its_gradient_is_the_difference_quotient():
    logits = some_logits().requires_grad_()
    (gradient,) = torch.autograd.grad(information_loss(logits), logits)
    for i in range(logits.shape[0]):
        for c in range(logits.shape[1]):
            step = torch.zeros_like(logits)
            step[i, c] = 1e-5
            slope = (loss_by_hand(logits + step) - loss_by_hand(logits - step)) / 2e-5
            assert gradient[i, c].item() == pytest.approx(slope, abs=1e-8)


def test_answers_become_sure_without_becoming_the_same():
    """Two images that both look like the first class, one less so: going down the entropy, both end there."""
    ends = {}
    for name, objective in (("information", information_loss), ("entropy", lambda x: softmax_entropy(x).mean())):
        logits = torch.tensor([[0.8, 0.0], [0.2, 0.0]], dtype=torch.float64, requires_grad=True)
        for _ in range(100):
            (gradient,) = torch.autograd.grad(objective(logits), logits)
            logits = (logits - 2 * gradient).detach().requires_grad_()
        ends[name] = logits.softmax(1)
    assert ends["entropy"][:, 0].min() > 0.9
    assert ends["information"].diagonal().min() > 0.9


def test_sure_answers_have_finite_gradients():
    logits = torch.tensor([[200.0, 0.0, -200.0], [300.0, 0.0, 0.0]], requires_grad=True)
    information_loss(logits).backward()
    assert logits.grad.isfinite().all()


def share_alike(earlier, later):
    """Of all pairs of an answer of each, how many are alike."""
    return torch.tensor(sum(a == b for a in earlier for b in later) / (len(earlier) * len(later)), dtype=torch.float64)


def evenness_by_hand(earlier, later, classes):
    """How many times as often as by chance; up to EVEN all, from UNEVEN on nothing, and a straight line between."""
    times_chance = float(share_alike(earlier, later)) / (1 / classes)
    if times_chance <= EVEN:
        return 1.0
    return 0.0 if times_chance >= UNEVEN else 1 - (times_chance - EVEN) / (UNEVEN - EVEN)


@pytest.mark.parametrize(
    ("earlier", "later", "classes", "expected"),
    [
        (range(64), range(64, 128), 1000, 1.0),  # none alike
        (range(64), range(64), 64, 1.0),  # as by chance
        ([0, 1] * 32, [0, 1] * 32, 10, 0.0),
        ([0, 1] * 32, [2, 3] * 32, 10, 1.0),  # two at a time, but others
        ([3] * 64, [3] * 64, 10, 0.0),
        ([3] * 64, [3] * 64, 2, 0.0),
        ([0] * 36 + [1, 2, 3, 4] * 7, [0] * 36 + [1, 2, 3, 4] * 7, 5, None),  # in between
        ([place % 6 for place in range(60)], [place % 6 for place in range(60)], 10, None),
        ([7], [7], 10, 0.0),
        ([7], [8], 10, 1.0),
    ],
)
def test_evenness_counts_pairs(earlier, later, classes, expected):
    value = evenness(share_alike(earlier, later), classes).item()
    assert value == pytest.approx(evenness_by_hand(earlier, later, classes), abs=1e-12)
    if expected is None:
        assert 0 < value < 1
    else:
        assert value == expected


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_up_to_half_more_than_chance_is_even_and_twice_is_nothing(classes):
    times = torch.tensor([0.0, 1.0, 1.5, 1.6, 1.75, 1.9, 2.0, 2.5], dtype=torch.float64)
    expected = torch.tensor([1.0, 1.0, 1.0, 0.8, 0.5, 0.2, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(evenness(times / classes, classes), expected)
    for time, value in zip(times, expected):
        torch.testing.assert_close(evenness(time / classes, classes), value)


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
def test_what_chance_makes_of_fair_answers_is_even(classes):
    generator = torch.Generator().manual_seed(0)
    for images in (128, 640):
        earlier, later = torch.randint(classes, (2, images), generator=generator).tolist()
        assert evenness(share_alike(earlier, later), classes) == 1


@pytest.mark.parametrize(("occurring", "expected"), [(1000, 1.0), (667, 1.0), (571, 0.5), (300, 0.0)])
def test_if_classes_are_missing_the_others_come_more_often(occurring, expected):
    assert evenness(torch.tensor(1 / occurring), 1000).item() == pytest.approx(expected, abs=5e-3)
