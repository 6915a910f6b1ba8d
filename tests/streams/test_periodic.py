from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grotta.functional import change_degree, imbalance_degree
from grotta.streams import exhaustive, ptta
from grotta.streams.periodic import _draw_from_left

GAMMAS = st.sampled_from([1e-300, 1e-12, 1e-4, 1e-2, 1.0, 100.0])


@st.composite
def domains(draw, classes=6):
    """Up to three domains of any labels; some classes may be missing in some of them."""
    domain = st.lists(st.integers(0, classes - 1), min_size=1, max_size=80)
    return [np.array(values) for values in draw(st.lists(domain, min_size=1, max_size=3))]


def periods_of(stream, period):
    """The stream's samples, period by period: (domain, indices), cut by the rule of the documentation."""
    for domain, indices in enumerate(stream.indices):
        count = max(1, round(len(indices) / period))
        edges = [i * len(indices) // count for i in range(count + 1)]
        for start, end in pairwise(edges):
            yield domain, indices[start:end]


@settings(deadline=None)
@given(domains(), GAMMAS, st.integers(1, 50), st.integers(0, 2**40))
def test_ptta_draws_every_sample_from_the_distribution_of_its_period(labels, gamma, period, seed):
    stream = ptta(labels, 6, gamma, period=period, seed=seed)
    assert [len(indices) for indices in stream.indices] == [len(domain) for domain in labels]
    periods = list(periods_of(stream, period))
    assert stream.label_distributions.shape == (len(periods), 6)
    assert np.allclose(stream.label_distributions.sum(axis=1), 1, atol=1e-12)
    for (domain, indices), p in zip(periods, stream.label_distributions):
        assert (p[labels[domain][indices]] > 0).all()
        assert (p[[c for c in range(6) if c not in labels[domain]]] == 0).all()


@settings(deadline=None)
@given(domains(), GAMMAS, st.integers(0, 2**40))
def test_ptta_goes_through_all_images_of_a_class_before_one_comes_again(labels, gamma, seed):
    stream = ptta(labels, 6, gamma, period=10, seed=seed)
    for domain, indices in zip(labels, stream.indices):
        for c in range(6):
            size, dealt = int((domain == c).sum()), indices[domain[indices] == c]
            for start in range(0, len(dealt), max(size, 1)):
                deck = dealt[start : start + size].tolist()
                assert len(set(deck)) == len(deck)


def test_ptta_labels_follow_the_published_distribution():
    labels = [np.arange(20_000) % 5]
    stream = ptta(labels, 5, 1.0, period=20_000, seed=3)
    counts = np.bincount(labels[0][stream.indices[0]], minlength=5)
    assert stats.chisquare(counts, 20_000 * stream.label_distributions[0]).pvalue > 1e-3


def test_ptta_mixes_the_labels_inside_a_period():
    labels = [np.arange(10_000) % 2]
    stream = ptta(labels, 2, 100.0, period=10_000)
    drawn = labels[0][stream.indices[0]]
    assert abs((drawn[1:] != drawn[:-1]).mean() - 0.5) < 0.02


def test_a_smaller_gamma_is_more_imbalanced_and_changes_more():
    labels = [np.arange(10_000) % 10]
    made = [ptta(labels, 10, gamma).label_distributions for gamma in (10.0, 1.0, 1e-1, 1e-2, 1e-4)]
    for degree in (imbalance_degree, change_degree):
        degrees = [degree(p) for p in made]
        assert degrees == sorted(degrees)
    assert imbalance_degree(made[-1]) == pytest.approx(np.sqrt(0.9), abs=1e-3)


@settings(deadline=None)
@given(domains(), GAMMAS, st.integers(1, 50), st.integers(0, 2**40))
def test_exhaustive_uses_each_image_exactly_once(labels, gamma, period, seed):
    stream = exhaustive(labels, 6, gamma, period=period, seed=seed)
    for domain, indices in zip(labels, stream.indices):
        assert sorted(indices.tolist()) == list(range(len(domain)))
    for (domain, indices), p in zip(periods_of(stream, period), stream.label_distributions, strict=True):
        assert np.allclose(np.bincount(labels[domain][indices], minlength=6) / len(indices), p)


def test_exhaustive_starts_with_the_distributions_of_ptta():
    labels = [np.arange(10_000) % 10]
    wanted = ptta(labels, 10, 0.1, seed=4).label_distributions[:3]
    drawn = exhaustive(labels, 10, 0.1, seed=4).label_distributions[:3]
    assert np.abs(wanted - drawn).max() < 0.15


def test_exhaustive_labels_have_the_probabilities_of_drawing_one_after_another():
    p, left, size, trials = np.array([0.6, 0.3, 0.1]), np.array([1, 2, 3]), 4, 20_000
    expected = {}
    for sequence in product(range(3), repeat=size):
        probability, rest = 1.0, left.copy()
        for label in sequence:
            open_classes = p * (rest > 0)
            probability *= open_classes[label] / open_classes.sum()
            rest[label] -= 1
        if probability > 0:
            expected[sequence] = probability
    assert sum(expected.values()) == pytest.approx(1)

    generator = np.random.default_rng(0)
    seen = Counter(tuple(_draw_from_left(left.copy(), np.log(p), size, generator)) for _ in range(trials))
    assert set(seen) <= set(expected)
    observed = [seen[sequence] for sequence in expected]
    assert stats.chisquare(observed, [trials * value for value in expected.values()]).pvalue > 1e-3
