import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grotta.functional.reliance import constancy, information, reliance, signs


@given(st.integers(2, 50), st.integers(0, 2**31 - 1))
def test_information_is_the_mean_divergence_from_the_mean_answer(classes, seed):
    probs = torch.rand(40, 1, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    probs = probs / probs.sum(2, keepdim=True)
    entropy, mean = -(probs * probs.log()).sum(2).mean(0), probs.mean(0)
    divergence = (probs * (probs / mean).log()).sum(2).mean()
    assert information(entropy, mean).item() == pytest.approx(divergence.item() / math.log(classes), abs=1e-9)


@given(st.tuples(*[st.floats(0.2, 1)] * 3), st.floats(0.3, 1))
def test_constancy_finds_who_knows_the_labels(knows, cluster):
    s = torch.tensor(knows, dtype=torch.float64)
    lagged = 0.1 + 0.9 * cluster * s[:, None] * s
    found, _ = constancy(lagged, torch.full((3, 10), 0.1, dtype=torch.float64))
    torch.testing.assert_close(found, s / s.max(), atol=1e-6, rtol=1e-6)


def test_independent_labels_do_not_cluster():
    assert constancy(torch.full((3, 3), 0.1), torch.full((3, 10), 0.1))[1] == 0


@given(*[st.tuples(*[st.floats(0, 1)] * 3)] * 4, st.floats(0, 1), st.integers(2, 1000))
def test_weights_are_weights(told, confidence, chance, constant, clear, classes):
    columns = [torch.tensor(x, dtype=torch.float64) for x in (told, confidence, chance, constant)]
    weights = reliance(signs(*columns[:3], columns[3].clamp_min(1e-3), torch.tensor(clear), classes))
    assert bool((weights >= 0).all())
    assert weights.sum().item() == pytest.approx(1)


def test_who_nearly_always_says_the_same_is_sure_of_little():
    told, sure, constant = torch.full((2,), 0.3), torch.tensor([0.9, 0.7]), torch.ones(2)
    even, one_sided = torch.full((2,), 0.1), torch.tensor([0.8, 0.1])
    assert reliance(signs(told, sure, even, constant, torch.tensor(0.0), 10))[0] > 0.7
    assert reliance(signs(told, sure, one_sided, constant, torch.tensor(0.0), 10))[0] < 0.35
