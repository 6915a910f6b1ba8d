import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.functional import bias_guided_refine

KINDS = ("plain", "biased", "one-class", "all-different", "constant", "duplicated", "zero")


def make_batch(batch, classes, dim, kind, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(batch, classes, generator=generator)
    features = torch.randn(batch, dim, generator=generator)
    if kind == "one-class":
        logits[:, -1] += 50
    elif kind == "all-different":
        logits[torch.arange(batch), torch.arange(batch) % classes] += 50
    else:
        logits[:, 0] += 0 if kind == "plain" else 3
    if kind == "constant":
        features[:] = features[0].clone()
    elif kind == "duplicated":
        features[batch // 2 :] = features[: batch - batch // 2].clone()
    elif kind == "zero":
        features[::2] = 0
    return logits.softmax(dim=1), features


def reference_affinity(features, affinity, k, sigma):
    """Rows of neighbours or Gaussian weights, one sample after another."""
    rows = features.double().numpy()
    rows = np.array([row / (np.sqrt((row**2).sum()) or 1) for row in rows])
    expected = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        squared = ((rows - row) ** 2).sum(axis=1)
        others = [j for j in range(len(rows)) if j != i]
        if affinity == "knn":
            near = sorted(others, key=lambda j: (round(squared[j] / 1e-9), j))[:k]
            expected[i, near] = 1 / len(near)
        else:
            expected[i, others] = np.exp(-squared[others] / (2 * sigma**2))
            expected[i] /= expected[i].sum()
    return expected


def reference_refine(probs, features, *, k=5, affinity="knn", sigma=1.0, lam=None):
    p = probs.double().numpy()
    batch, classes = p.shape
    if batch == 1:
        return p
    counts = sorted((np.bincount(p.argmax(axis=1), minlength=classes) / batch).tolist(), reverse=True)
    kept = np.array(counts[: min(batch, classes)])
    zeta = math.sqrt(((kept / kept.sum() - 1 / len(kept)) ** 2).sum())
    weight = zeta ** (1 / math.log(classes)) if lam is None else lam
    graph = reference_affinity(features, affinity, k, sigma)
    scores = (1 - weight) * np.linalg.inv(np.eye(batch) - weight * graph) @ p
    # Rounded, because classes that tie exactly must not be told apart by the last bit of this inverse.
    one_hot = np.eye(classes)[scores.round(12).argmax(axis=1)]
    return one_hot if lam is not None else zeta * one_hot + (1 - zeta) * p


def assert_agrees(probs, features, **options):
    refined = bias_guided_refine(probs, features, **options).probs
    assert refined.dtype == probs.dtype
    assert torch.isfinite(refined).all()
    assert torch.allclose(refined.sum(dim=1), torch.ones(len(probs)), atol=1e-5)
    assert np.abs(refined.numpy() - reference_refine(probs, features, **options)).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("batch", [1, 2, 3, 5, 6, 7, 64, 257])
def test_equals_the_loop_for_any_size_and_content(batch, classes, kind):
    probs, features = make_batch(batch, classes, 16, kind)
    assert_agrees(probs, features)


@settings(deadline=None)
@given(
    st.integers(1, 40),
    st.integers(2, 30),
    st.sampled_from(KINDS),
    st.integers(0, 2**31),
    st.fixed_dictionaries(
        {},
        optional={
            "k": st.integers(1, 300),
            "affinity": st.sampled_from(["knn", "rbf"]),
            "sigma": st.sampled_from([0.5, 1.0, 5.0]),
            "lam": st.sampled_from([0.0, 0.6, 0.99]),
        },
    ),
)
def test_equals_the_loop_for_all_options(batch, classes, kind, seed, options):
    probs, features = make_batch(batch, classes, 8, kind, seed)
    assert_agrees(probs, features, **options)


def test_the_output_weighs_the_agreement_by_zeta():
    probs, features = make_batch(32, 10, 8, "biased")
    fixed = bias_guided_refine(probs, features)
    one_hot = bias_guided_refine(probs, features, lam=fixed.lam.item()).probs
    assert torch.allclose(fixed.probs, fixed.zeta * one_hot + (1 - fixed.zeta) * probs)
    assert fixed.lam.item() == pytest.approx(fixed.zeta.item() ** (1 / math.log(10)))
    assert set(one_hot.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("batch", [1, 4, 10])
def test_balanced_predictions_come_back_bit_for_bit(batch):
    probs, features = make_batch(batch, 10, 8, "all-different")
    refined = bias_guided_refine(probs, features)
    assert torch.equal(refined.probs, probs)
    assert refined.zeta.item() == refined.lam.item() == 0


def test_a_fixed_lambda_is_reported_and_a_single_sample_unchanged():
    probs, features = make_batch(1, 10, 8, "plain")
    refined = bias_guided_refine(probs, features, lam=0.6)
    assert torch.equal(refined.probs, probs)
    assert refined.lam.item() == 0.6


def test_an_outlier_of_a_biased_batch_follows_its_neighbours():
    probs = torch.tensor([[0.9, 0.1]] * 9 + [[0.45, 0.55]])
    refined = bias_guided_refine(probs, torch.ones(10, 4))
    assert refined.probs.argmax(dim=1).tolist() == [0] * 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_served(dtype):
    probs, features = make_batch(20, 10, 8, "biased")
    refined = bias_guided_refine(probs.to(dtype), features.to(dtype))
    assert refined.probs.dtype == dtype
    assert torch.allclose(refined.probs.float().sum(dim=1), torch.ones(20), atol=2e-2)


def test_autocast_and_inference_mode_do_not_change_the_result():
    probs, features = make_batch(64, 100, 32, "biased")
    expected = bias_guided_refine(probs, features).probs
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(bias_guided_refine(probs, features).probs, expected)


def test_gradients_flow_through_the_probabilities_alone():
    probs, features = make_batch(12, 4, 8, "biased")
    probs.requires_grad_()
    features.requires_grad_()
    refined = bias_guided_refine(probs, features)
    refined.probs[:, 0].sum().backward()
    assert torch.allclose(probs.grad[:, 0], (1 - refined.zeta).float().expand(12))
    assert features.grad is None


def test_the_inputs_stay_as_they_are():
    probs, features = make_batch(20, 10, 8, "biased")
    before = probs.clone(), features.clone()
    bias_guided_refine(probs, features)
    assert torch.equal(probs, before[0])
    assert torch.equal(features, before[1])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"probs": torch.ones(4, 1)}, ValueError, "probs must have at least 2 classes"),
        ({"features": torch.ones(5, 3)}, ValueError, "probs and features must describe the same.*4 and 5"),
        ({"features": torch.ones(4, 3, 2)}, ValueError, r"features must have shape \(B, d\)"),
        ({"k": 0}, ValueError, "k must be at least 1, got 0"),
        ({"sigma": -1.0}, ValueError, "sigma must be positive, got -1.0"),
        ({"affinity": "cosine"}, ValueError, "affinity must be one of 'knn', 'rbf', got 'cosine'"),
        ({"lam": 1.0}, ValueError, r"lam must be in \[0, 1\), got 1.0"),
        ({"lam": float("nan")}, ValueError, r"lam must be in \[0, 1\), got nan"),
        ({"lam": "0.6"}, TypeError, "lam must be a number, got '0.6'"),
    ],
)
def test_bad_input_is_named(change, error, message):
    arguments = {"probs": torch.ones(4, 2) / 2, "features": torch.ones(4, 3)} | change
    with pytest.raises(error, match=message):
        bias_guided_refine(**arguments)
