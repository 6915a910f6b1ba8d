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


def evenness_by_hand(answers, classes):
    """From every pair of two answers."""
    pairs = [(a, b) for place, a in enumerate(answers) for b in answers[:place]]
    times_chance = classes * sum(a == b for a, b in pairs) / max(len(pairs), 1)
    return min(max((UNEVEN - times_chance) / (UNEVEN - EVEN), 0.0), 1.0)


def counts(answers, classes):
    return torch.bincount(torch.as_tensor(answers), minlength=classes).double()


@pytest.mark.parametrize(
    ("answers", "classes", "expected"),
    [
        (list(range(64)), 1000, 1.0),  # as many as there can be
        ([0, 1] * 32, 10, 0.0),
        ([3] * 64, 10, 0.0),
        ([3] * 64, 2, 0.0),
        ([0] * 36 + [1, 2, 3, 4] * 7, 5, None),  # in between
        ([place % 6 for place in range(60)], 10, None),
        ([7], 10, 1.0),
    ],
)
def test_evenness_counts_pairs(answers, classes, expected):
    value = evenness(counts(answers, classes)).item()
    assert value == pytest.approx(evenness_by_hand(answers, classes), abs=1e-12)
    if expected is None:
        assert 0 < value < 1
    else:
        assert value == expected


def test_before_the_first_answer_nothing_is_uneven():
    assert evenness(torch.zeros(10)).item() == 1.0


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
def test_what_chance_makes_of_fair_answers_is_even(classes):
    generator = torch.Generator().manual_seed(0)
    for images in (64, 640):
        assert evenness(counts(torch.randint(classes, (images,), generator=generator), classes)) == 1


@pytest.mark.parametrize(("classes", "occurring", "even"), [(10, 10, True), (1000, 1000, True), (1000, 300, False)])
def test_fading_does_not_change_what_is_even(classes, occurring, even):
    """Counts that fade settle near 2100 images, old ones with little weight: no longer whole numbers."""
    generator = torch.Generator().manual_seed(0)
    answered, squares = torch.zeros(classes, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    for _ in range(200):
        answered = 0.97 * answered + counts(torch.randint(occurring, (64,), generator=generator), classes)
        squares = 0.97**2 * squares + 64
    assert answered.sum().item() == pytest.approx(64 / 0.03, rel=0.01)
    assert evenness(answered, squares).item() == pytest.approx(float(even), abs=0.1)


def test_of_many_answers_only_the_shares_matter():
    shares = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.1], dtype=torch.float64)  # agree 1.6 times as often as by chance
    for images in (1e4, 1e5):
        assert evenness(images * shares).item() == pytest.approx(0.8, abs=2e-3)
