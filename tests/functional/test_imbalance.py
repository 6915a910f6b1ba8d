import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.functional import imbalance_score


def reference(labels, classes):
    histogram = [labels.count(c) / len(labels) for c in range(classes)]
    kept = sorted(histogram, reverse=True)[: min(classes, len(labels))]
    return math.sqrt(sum((value / sum(kept) - 1 / len(kept)) ** 2 for value in kept))


@settings(deadline=None)
@given(st.data(), st.integers(2, 40), st.integers(1, 60))
def test_equals_the_formula(data, classes, batch):
    labels = data.draw(st.lists(st.integers(0, classes - 1), min_size=batch, max_size=batch))
    probs = torch.eye(classes)[labels] * 0.5 + 0.5 / classes
    assert imbalance_score(probs).item() == pytest.approx(reference(labels, classes), abs=1e-7)


@pytest.mark.parametrize(("batch", "classes"), [(1, 2), (1, 1000), (3, 3), (7, 100), (64, 1000), (30, 10)])
def test_is_exactly_zero_for_balanced_predictions(batch, classes):
    labels = torch.arange(batch) % classes
    assert imbalance_score(torch.eye(classes)[labels]).item() == 0


@pytest.mark.parametrize(("batch", "classes"), [(2, 2), (64, 10), (64, 1000), (257, 1000)])
def test_is_largest_when_all_predictions_agree(batch, classes):
    probs = torch.eye(classes)[torch.zeros(batch, dtype=torch.long)]
    assert imbalance_score(probs).item() == pytest.approx(math.sqrt(1 - 1 / min(batch, classes)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_number_of_full_precision_comes_out_for_any_dtype(dtype):
    zeta = imbalance_score(torch.eye(3, dtype=dtype)[[0, 0, 1]])
    assert zeta.ndim == 0
    assert zeta.item() == pytest.approx(math.sqrt(2) / 3, abs=1e-15)


@pytest.mark.parametrize(
    ("probs", "error", "message"),
    [
        (torch.ones(4), ValueError, r"probs must have shape \(B, C\)"),
        (torch.ones(0, 3), ValueError, r"probs must have shape.*\(0, 3\)"),
        (torch.ones(4, 1), ValueError, "probs must have at least 2 classes"),
        (torch.ones(4, 2).int(), TypeError, "probs must be floating point, got torch.int32"),
    ],
)
def test_bad_input_is_named(probs, error, message):
    with pytest.raises(error, match=message):
        imbalance_score(probs)
