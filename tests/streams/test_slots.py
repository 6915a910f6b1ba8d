import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.streams import rotta
from grotta.streams.dirichlet import log_dirichlet


def reference(domain, num_classes, gamma, child):
    """The same draws, handed out class by class and slot by slot."""
    generator = np.random.default_rng(child)
    slots = min(num_classes, 100)
    shares = np.exp(log_dirichlet(gamma, (num_classes, slots), generator))
    places = generator.permuted(np.tile(np.arange(num_classes), (slots, 1)), axis=1)
    filled = [{} for _ in range(slots)]
    for c in range(num_classes):
        images = [i for i, label in enumerate(domain) if label == c]
        start = 0
        for slot in range(slots):
            end = len(images) if slot == slots - 1 else int(sum(shares[c, : slot + 1]) * len(images))
            filled[slot][c] = images[start:end]
            start = end
    order = []
    for slot in range(slots):
        for c in sorted(range(num_classes), key=lambda c: places[slot, c]):
            order.extend(filled[slot][c])
    return order


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=60), min_size=1, max_size=3),
    st.sampled_from([1e-12, 1e-2, 0.3, 10.0]),
    st.integers(0, 2**31),
)
def test_equals_the_loop_over_classes_and_slots(labels, gamma, seed):
    stream = rotta(labels, 7, gamma, seed=seed)
    for domain, indices, child in zip(labels, stream.indices, np.random.SeedSequence(seed).spawn(len(labels))):
        assert indices.tolist() == reference(domain, 7, gamma, child)


@pytest.mark.parametrize("num_classes", [1, 2, 100, 130])
def test_each_image_comes_exactly_once(num_classes):
    labels = [np.random.default_rng(0).integers(0, num_classes, 700), np.zeros(5, int)]
    stream = rotta(labels, num_classes, 0.1)
    for domain, indices in zip(labels, stream.indices):
        assert sorted(indices.tolist()) == list(range(len(domain)))


def test_classes_are_not_mixed_when_each_has_one_slot():
    labels = [np.arange(1000) % 10]
    drawn = labels[0][rotta(labels, 10, 1e-9).indices[0]]
    assert (drawn[1:] != drawn[:-1]).sum() == 9


def test_the_period_changes_the_statistics_but_not_the_order():
    labels = [np.arange(1000) % 10]
    coarse, fine = rotta(labels, 10, 0.1, period=500), rotta(labels, 10, 0.1, period=50)
    assert np.array_equal(coarse.indices[0], fine.indices[0])
    assert np.allclose(fine.label_distributions.reshape(2, 10, 10).mean(axis=1), coarse.label_distributions)
