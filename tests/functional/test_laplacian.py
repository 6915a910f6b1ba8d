import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import softmax, xlogy

from grotta.functional import laplacian_refine


def reference_kernel(features, affinity, k):
    rows = features.double().numpy()
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if affinity == "linear":
        return rows @ rows.T
    distance = cdist(rows, rows)
    if affinity == "rbf":
        width = np.mean([sorted(row)[min(k, len(rows)) - 1] for row in distance])
        return np.exp(-(distance**2) / (2 * width**2))
    kernel = np.zeros_like(distance)
    for i, row in enumerate(distance):
        kernel[i, [j for _, j in sorted((d, j) for j, d in enumerate(row) if j != i)[:k]]] = 1
    return kernel


def reference(probs, kernel):
    u = -np.log(probs.double().numpy() + 1e-10)
    y = softmax(-u, axis=1)
    before = None
    for _ in range(100):
        pairwise = kernel @ y
        y = softmax(-u + pairwise, axis=1)
        energy = (u * y - pairwise * y + xlogy(y, y)).sum()
        if before is not None and abs(energy - before) <= 1e-8 * abs(before):
            break
        before = energy
    return y


def make_batch(batch, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(batch, classes, generator=generator)).softmax(dim=1), torch.randn(
        batch, 6, generator=generator
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(2, 30),
    st.integers(2, 50),
    st.sampled_from(["knn", "rbf", "linear"]),
    st.integers(0, 2**31),
)
def test_equals_the_published_iteration(batch, classes, k, affinity, seed):
    probs, features = make_batch(batch, classes, seed)
    kernel = np.ones((1, 1)) if batch == 1 and affinity == "rbf" else reference_kernel(features, affinity, k)
    refined = laplacian_refine(probs, features, affinity=affinity, k=k)
    assert refined.dtype == probs.dtype
    assert np.abs(refined.numpy() - reference(probs, kernel)).max() < 1e-5


@pytest.mark.parametrize("affinity", ["knn", "rbf", "linear"])
@pytest.mark.parametrize("features", [torch.ones(6, 3), torch.zeros(6, 3), torch.eye(6)[[0, 0, 1, 1, 1, 2]]])
@pytest.mark.parametrize("k", [1, 5])
def test_duplicates_and_zero_features_never_give_nan(affinity, features, k):
    probs, _ = make_batch(6, 4, 0)
    refined = laplacian_refine(probs, features, affinity=affinity, k=k)
    assert torch.isfinite(refined).all()
    assert torch.allclose(refined.sum(dim=1), torch.ones(6))


def test_identical_samples_have_affinity_one_under_rbf():
    probs, _ = make_batch(6, 4, 0)
    assert (
        np.abs(
            laplacian_refine(probs, torch.ones(6, 3), affinity="rbf").numpy() - reference(probs, np.ones((6, 6)))
        ).max()
        < 1e-6
    )


def test_certain_predictions_stay_finite():
    refined = laplacian_refine(torch.eye(3)[[0, 0, 1]], torch.ones(3, 2))
    assert torch.isfinite(refined).all()
    assert refined.argmax(dim=1).tolist() == [0, 0, 1]


def test_a_single_sample_keeps_its_probabilities_without_neighbours():
    probs, features = make_batch(1, 5, 3)
    assert torch.allclose(laplacian_refine(probs, features), probs)


def test_the_energy_of_the_fixed_point_cannot_be_lowered_by_another_step():
    probs, features = make_batch(20, 5, 1)
    refined = laplacian_refine(probs.double(), features).numpy()
    kernel = reference_kernel(features, "knn", 5)
    u = -np.log(probs.double().numpy() + 1e-10)
    assert np.abs(softmax(-u + kernel @ refined, axis=1) - refined).max() < 1e-3
    assert math.isclose(refined.sum(), 20)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"features": torch.ones(5, 3)}, ValueError, "probs and features must describe the same.*4 and 5"),
        ({"k": 0}, ValueError, "k must be at least 1, got 0"),
        ({"affinity": "dot"}, ValueError, "affinity must be one of 'knn', 'rbf', 'linear', got 'dot'"),
    ],
)
def test_bad_input_is_named(change, error, message):
    arguments = {"probs": torch.ones(4, 2) / 2, "features": torch.ones(4, 3)} | change
    with pytest.raises(error, match=message):
        laplacian_refine(**arguments)
