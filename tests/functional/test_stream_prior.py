"""The arithmetic of the stream output against slow loops in float64 that follow its definition word for word."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.functional import stream_prior as sp

SCALES = (2.0, 9.0)
DOUBLE = torch.float64


def rows(generator, *shape):
    return torch.rand(*shape, generator=generator, dtype=DOUBLE).add(0.05).log().softmax(-1)


def a_stream(past=5, batch=4, readers=2, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {
        "weights": sp.time_neighbours(past, batch, torch.tensor(SCALES, dtype=DOUBLE)).around,
        "trust": rows(generator, 1 + len(SCALES)),
        "past": rows(generator, past, readers, classes),
        "base": rows(generator, readers, classes),
        "likelihood": 3 * rows(generator, batch, readers, classes),
    }


def kernel_mean(i, past, batch, scale, labels, base, *, causal=False):
    """The mix around new sample i: neighbours by distance, one sample's worth for the base."""
    mix, total = list(base), 1.0
    for j in range(past + batch):
        distance = past + i - j
        if distance == 0 or (causal and distance < 0):
            continue
        weight = math.exp(-abs(distance) / scale)
        total += weight
        mix = [m + weight * label for m, label in zip(mix, labels[j])]
    return [m / total for m in mix]


def mix_by_hand(i, s, labels, reader, *, causal=False):
    past, batch = len(s["past"]), len(s["likelihood"])
    labels = labels[:, reader].tolist()
    base, trust = s["base"][reader].tolist(), s["trust"].tolist()
    mixes = [base] + [kernel_mean(i, past, batch, scale, labels, base, causal=causal) for scale in SCALES]
    return [sum(t * mix[y] for t, mix in zip(trust, mixes)) for y in range(len(base))]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 6), st.integers(1, 6), st.floats(0.3, 200))
def test_neighbours_weigh_by_distance_and_never_themselves(past, batch, scale):
    scales = torch.tensor([scale], dtype=DOUBLE)
    around, before, both = sp.time_neighbours(past, batch, scales)
    assert torch.equal(both, torch.stack([around, before], 1))
    one_hot = torch.eye(past + batch, dtype=DOUBLE)
    for i in range(batch):
        nothing = [0.0] * (past + batch)
        expected = kernel_mean(i, past, batch, scale, one_hot.tolist(), nothing)
        torch.testing.assert_close(around[1, i, 1:], torch.tensor(expected, dtype=DOUBLE))
        expected = kernel_mean(i, past, batch, scale, one_hot.tolist(), nothing, causal=True)
        torch.testing.assert_close(before[1, i, 1:], torch.tensor(expected, dtype=DOUBLE))
        assert around[1, i, 1 + past + i] == 0
        assert bool((before[1, i, 1 + past + i :] == 0).all())
    for kernels in (around, before):
        torch.testing.assert_close(kernels.sum(2), torch.ones(2, batch, dtype=DOUBLE))
        torch.testing.assert_close(kernels[0, :, 0], torch.ones(batch, dtype=DOUBLE))


@pytest.mark.parametrize("past", [0, 5])
@pytest.mark.parametrize("batch", [1, 4])
def test_mix_is_the_kernel_mean_of_the_labels_around(past, batch):
    s = a_stream(past, batch)
    labels = torch.cat([s["past"], sp.normalised(s["likelihood"])])
    mix = sp.local_mix(sp.trusted(s["weights"], s["trust"]), labels, s["base"])
    torch.testing.assert_close(mix.sum(2), torch.ones(batch, 2, dtype=DOUBLE))
    for i in range(batch):
        for reader in range(2):
            torch.testing.assert_close(mix[i, reader], torch.tensor(mix_by_hand(i, s, labels, reader), dtype=DOUBLE))


@pytest.mark.parametrize("rounds", [1, 3])
def test_labels_settle_as_in_the_loop(rounds):
    s = a_stream()
    settled = sp.settle_labels(s["likelihood"], sp.trusted(s["weights"], s["trust"]), s["past"], s["base"], rounds)
    labels = s["likelihood"] / s["likelihood"].sum(2, keepdim=True)
    for _ in range(rounds):
        known = torch.cat([s["past"], labels])
        labels = labels.clone()
        for i in range(len(labels)):
            for reader in range(2):
                product = s["likelihood"][i, reader] * torch.tensor(mix_by_hand(i, s, known, reader), dtype=DOUBLE)
                labels[i, reader] = product / product.sum()
    torch.testing.assert_close(settled, labels)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(2, 5), st.integers(0, 1000))
def test_with_one_mix_for_all_each_round_raises_its_likelihood(batch, classes, seed):
    """Weights that do not depend on time make a round the EM step for the proportions of a mixture."""
    generator = torch.Generator().manual_seed(seed)
    likelihood = rows(generator, batch, 1, classes)
    flat = torch.full((batch, 1 + batch), 1 / batch, dtype=DOUBLE)
    flat[:, 0] = 0  # nothing is left for the base
    none = torch.zeros(0, 1, classes, dtype=DOUBLE)
    base = torch.full((1, classes), 1 / classes, dtype=DOUBLE)
    scores = []
    for rounds in range(6):
        mix = sp.settle_labels(likelihood, flat, none, base, rounds)[:, 0].mean(0)
        scores.append((likelihood[:, 0] @ mix).log().sum().item())
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(scores))


def test_rounds_settle():
    s = a_stream(past=20, batch=16)
    late, later = (
        sp.settle_labels(s["likelihood"], sp.trusted(s["weights"], s["trust"]), s["past"], s["base"], rounds)
        for rounds in (60, 61)
    )
    torch.testing.assert_close(late, later, atol=1e-5, rtol=0)


def test_evidence_for_a_scale_is_what_neighbours_predict_beyond_the_base():
    s = a_stream()
    likelihood, base = s["likelihood"][:, 0], s["base"][0]
    raw = torch.cat([s["past"][:, 0], sp.normalised(likelihood)])
    evidence = sp.scale_evidence(likelihood, s["weights"], raw, base)
    for place, scale in enumerate(SCALES):
        total = 0.0
        for i in range(4):
            mix = kernel_mean(i, 5, 4, scale, raw.tolist(), base.tolist())
            total += math.log(sum(a * b for a, b in zip(likelihood[i].tolist(), mix)))
            total -= math.log(sum(a * b for a, b in zip(likelihood[i].tolist(), base.tolist())))
        assert evidence[place].item() == pytest.approx(total)


def test_the_running_mix_is_the_mean_before_each_answer():
    generator = torch.Generator().manual_seed(5)
    mean, probs = rows(generator, 3), rows(generator, 6, 3)
    mixes = sp.running_mix(mean, probs, sp.running_weights(len(probs), 40.0, probs))
    for i in range(6):
        torch.testing.assert_close(mixes[i], mean)
        mean = math.exp(-1 / 40) * mean + (1 - math.exp(-1 / 40)) * probs[i]


def test_the_matching_heat_gives_the_confidence_that_was_asked_for():
    heats, confidence = torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0.95, 0.8, 0.5, 0.3])
    torch.testing.assert_close(sp.matching_heat(confidence, heats.log(), confidence), heats)
    torch.testing.assert_close(
        sp.matching_heat(torch.tensor([1.0, 0.0]), heats.log(), confidence), torch.tensor([1.0, 8.0])
    )
    between = sp.matching_heat(torch.tensor([0.65]), heats.log(), confidence)
    torch.testing.assert_close(between, torch.tensor([2 * 2**0.5]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_answers_overruled_as_often_as_their_confidence_says_are_no_surprise(seed):
    generator = torch.Generator().manual_seed(seed)
    confidence = torch.rand(20_000, 1, generator=generator, dtype=DOUBLE) * 0.9 + 0.05
    right = (torch.rand(20_000, 1, generator=generator, dtype=DOUBLE) < confidence).double()
    shuffled = right[torch.randperm(20_000, generator=generator)]
    expected = (confidence * confidence.log() + (1 - confidence) * (1 - confidence).log()).sum()
    for kept in (right, shuffled):
        told = (kept * confidence.log() + (1 - kept) * (1 - confidence).log()).sum()
        torch.testing.assert_close(sp.unsuspected(confidence, kept)[0], expected - told)
    assert abs(sp.unsuspected(confidence, right)[0]) < 600
    assert sp.unsuspected(confidence, shuffled)[0] > 5000


def test_evidence_of_answers_is_their_probability_through_the_confusion():
    generator = torch.Generator().manual_seed(3)
    mix, confusion, answers = rows(generator, 4, 2, 3), rows(generator, 2, 3, 3), torch.tensor([0, 2, 2, 1])
    evidence = sp.answer_evidence(mix, answers, confusion)
    for reader in range(2):
        total = 0.0
        for i, answer in enumerate(answers.tolist()):
            total += math.log(sum(float(mix[i, reader, y] * confusion[reader, y, answer]) for y in range(3)))
        assert evidence[reader].item() == pytest.approx(total)


def test_nothing_is_infinite_where_a_class_is_impossible():
    certain = torch.tensor([[1.0, 0.0, 0.0]], dtype=DOUBLE)
    assert sp.normalised(torch.zeros(1, 3)).isfinite().all()
    assert sp.answer_evidence(certain[None], torch.tensor([2]), torch.eye(3, dtype=DOUBLE)[None]).isfinite().all()
