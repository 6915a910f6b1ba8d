import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grotta.streams.dirichlet import log_dirichlet, log_normalised


def draws(gamma, shape, seed=0):
    return np.exp(log_dirichlet(gamma, shape, np.random.default_rng(seed)))


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("gamma", [1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0])
def test_the_second_moment_is_that_of_the_dirichlet(gamma, classes):
    squares = (draws(gamma, (20_000, classes)) ** 2).sum(axis=1)
    expected = (1 + gamma) / (classes * gamma + 1)
    # A variable in [0, 1] with mean m has a variance of at most m (1 - m).
    assert abs(squares.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / len(squares))


@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0, 7.0])
def test_each_class_has_the_beta_marginal(gamma):
    p = draws(gamma, (5_000, 4), seed=1)
    for column in p.T:
        assert stats.kstest(column, stats.beta(gamma, 3 * gamma).cdf).pvalue > 1e-3


def test_no_class_is_preferred():
    winners = np.bincount(draws(1e-4, (20_000, 5)).argmax(axis=1))
    assert stats.chisquare(winners).pvalue > 1e-3


@settings(deadline=None)
@given(st.floats(min_value=5e-324, max_value=1e300), st.integers(1, 50), st.integers(0, 2**31))
def test_rows_are_distributions_for_any_gamma(gamma, classes, seed):
    p = draws(gamma, (3, classes), seed)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert np.allclose(p.sum(axis=1), 1, atol=1e-12)


def test_normalising_keeps_a_zero_weight_and_what_underflows():
    logs = log_normalised(np.array([-np.inf, -5e5, -5e5]))
    assert np.allclose(np.exp(logs), [0, 0.5, 0.5])
