import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from grotta.functional import knn_affinity, rbf_affinity


def unit(features):
    rows = features.double().numpy()
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


def reference_knn(features, k):
    distance = cdist(unit(features), unit(features), "sqeuclidean")
    expected = np.zeros_like(distance)
    for i, row in enumerate(distance):
        order = sorted((round(d / 1e-9), j) for j, d in enumerate(row) if j != i)[:k]
        for _, j in order:
            expected[i, j] = 1 / len(order)
    return expected


def reference_rbf(features, sigma):
    weights = np.exp(-cdist(unit(features), unit(features), "sqeuclidean") / (2 * sigma**2))
    np.fill_diagonal(weights, 0)
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def feature_batches(draw, max_batch=24):
    """Random, repeated, scaled and zero rows in any mixture."""
    batch, dim = draw(st.integers(2, max_batch)), draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    distinct = torch.randn(draw(st.integers(1, batch)), dim, generator=generator)
    rows = draw(st.lists(st.integers(0, len(distinct) - 1), min_size=batch, max_size=batch))
    scales = draw(st.lists(st.sampled_from([0.0, 1e-20, 0.5, 1.0, 1e15]), min_size=batch, max_size=batch))
    return distinct[rows] * torch.tensor(scales)[:, None]


@settings(deadline=None)
@given(feature_batches(), st.integers(1, 40))
def test_knn_equals_a_sorted_list_of_neighbours(features, k):
    assert np.allclose(knn_affinity(features, k).numpy(), reference_knn(features, k), atol=1e-7)


@settings(deadline=None)
@given(feature_batches(), st.sampled_from([0.1, 1.0, 2.5, 5.0]))
def test_rbf_equals_the_normalised_gaussian(features, sigma):
    with np.errstate(invalid="ignore"):
        expected = reference_rbf(features, sigma)
    # The plain formula gives an empty row, 0/0, where every other sample is too far away for it.
    filled = np.isfinite(expected).all(axis=1)
    assert np.allclose(rbf_affinity(features, sigma).numpy()[filled], expected[filled], atol=1e-6)


@settings(deadline=None)
@given(feature_batches(), st.floats(1e-300, 1e300))
def test_rbf_rows_sum_to_one_for_any_sigma(features, sigma):
    affinity = rbf_affinity(features, sigma)
    assert torch.allclose(affinity.sum(dim=1), torch.ones(len(features)))
    assert (affinity.diagonal() == 0).all()


def test_a_tiny_sigma_leaves_the_nearest_sample():
    features = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    assert torch.equal(rbf_affinity(features, 1e-200), knn_affinity(features, 1))


def test_equally_distant_samples_are_taken_in_order():
    affinity = knn_affinity(torch.ones(5, 3), k=2)
    assert affinity.nonzero()[:, 1].view(5, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


def test_only_the_direction_of_a_feature_matters():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(20, 8, generator=generator)
    scaled = features * torch.logspace(-18, 18, 20)[:, None]
    assert torch.equal(knn_affinity(scaled, 4), knn_affinity(features, 4))
    assert torch.allclose(rbf_affinity(scaled, 0.5), rbf_affinity(features, 0.5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_result_has_the_dtype_of_the_features(dtype):
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert knn_affinity(features, 2).dtype == rbf_affinity(features, 1.0).dtype == dtype


def test_autocast_does_not_change_the_graph():
    features = torch.randn(40, 64, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = knn_affinity(features, 5), rbf_affinity(features, 1.0)
    assert torch.equal(inside[0], knn_affinity(features, 5))
    assert torch.equal(inside[1], rbf_affinity(features, 1.0))


def test_a_single_sample_has_no_neighbour():
    assert knn_affinity(torch.ones(1, 3), 5).tolist() == rbf_affinity(torch.ones(1, 3), 1.0).tolist() == [[0.0]]


def test_rbf_is_differentiable():
    features = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda f: rbf_affinity(f, 0.7), features.requires_grad_())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: knn_affinity(torch.ones(4), 1), ValueError, r"features must have shape \(B, d\).*\(4,\)"),
        (lambda: knn_affinity(torch.ones(0, 4), 1), ValueError, r"features must have shape.*\(0, 4\)"),
        (lambda: knn_affinity(torch.ones(4, 4).long(), 1), TypeError, "features must be floating point"),
        (lambda: knn_affinity([[1.0]], 1), TypeError, "features must be a tensor.*list"),
        (lambda: knn_affinity(torch.ones(4, 4), 0), ValueError, "k must be at least 1, got 0"),
        (lambda: knn_affinity(torch.ones(4, 4), 1.5), TypeError, "k must be a whole number, got 1.5"),
        (lambda: rbf_affinity(torch.ones(4, 4), 0), ValueError, "sigma must be positive, got 0"),
        (lambda: rbf_affinity(torch.ones(4, 4), float("nan")), ValueError, "sigma must be finite, got nan"),
        (lambda: rbf_affinity(torch.ones(4, 4), "1"), TypeError, "sigma must be a number, got '1'"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
