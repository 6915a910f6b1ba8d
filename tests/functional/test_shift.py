import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.functional import change_degree, imbalance_degree


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**31))
def test_equal_the_sums_over_periods_and_classes(periods, classes, seed):
    p = np.random.default_rng(seed).dirichlet([0.3] * classes, size=periods)
    imbalance = [math.sqrt(sum((value - 1 / classes) ** 2 for value in row)) for row in p]
    change = [math.sqrt(sum((a - b) ** 2 for a, b in zip(p[i], p[i - 1]))) for i in range(1, periods)]
    assert imbalance_degree(p) == pytest.approx(sum(imbalance) / periods, abs=1e-12)
    expected = math.sqrt(2) / 2 * sum(change) / (periods - 1) if periods > 1 else 0
    assert change_degree(p) == pytest.approx(expected, abs=1e-12)


def test_uniform_and_single_class_are_the_ends_of_the_range():
    assert imbalance_degree(np.full((3, 4), 0.25)) == change_degree(np.full((3, 4), 0.25)) == 0
    assert imbalance_degree(np.eye(4)) == pytest.approx(math.sqrt(1 - 1 / 4))
    assert change_degree(np.eye(4)) == pytest.approx(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_arrays_tensors_and_lists_give_one_float(dtype):
    p = np.random.default_rng(0).dirichlet([1.0] * 5, size=7)
    for degree in (imbalance_degree, change_degree):
        assert isinstance(degree(p), float)
        assert degree(torch.tensor(p, dtype=dtype, requires_grad=True)) == pytest.approx(degree(p), abs=1e-6)
        assert degree(p.tolist()) == degree(p)


@pytest.mark.parametrize("degree", [imbalance_degree, change_degree])
@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.5], r"p must have shape \(n, C\).*\(2,\)"),
        (np.zeros((0, 3)), r"p must have shape.*\(0, 3\)"),
        ([[3, 4]], "p must hold distributions"),
        ([[1.5, -0.5]], "p must hold distributions"),
        ([[float("nan"), 1.0]], "p must hold distributions"),
    ],
)
def test_bad_input_is_named(degree, p, message):
    with pytest.raises(ValueError, match=message):
        degree(p)
