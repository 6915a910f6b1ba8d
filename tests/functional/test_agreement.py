import torch
from hypothesis import given
from hypothesis import strategies as st

from grotta import functional as GF

knows = st.tuples(*[st.floats(0.15, 0.97)] * 3)


@given(knows, st.integers(2, 1000))
def test_experts_with_independent_mistakes_are_known_from_how_often_they_agree(known, classes):
    s = torch.tensor(known, dtype=torch.float64)
    agreement = 1 / classes + (1 - 1 / classes) * s[:, None] * s
    torch.testing.assert_close(GF.accuracies_from_agreement(agreement, classes), s, atol=1e-9, rtol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(2, 1000))
def test_any_agreement_gives_accuracies_that_are_numbers(pairs, classes):
    agreement = torch.ones(3, 3, dtype=torch.float64)
    for (a, b), value in zip(((0, 1), (0, 2), (1, 2)), pairs):
        agreement[a, b] = agreement[b, a] = value
    accuracies = GF.accuracies_from_agreement(agreement, classes)
    assert bool(((accuracies >= 0.02) & (accuracies <= 0.98)).all())


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
def test_pairs_are_counted_one_by_one(answers):
    counts = GF.pairwise_agreement(torch.tensor(answers))
    for a in range(3):
        for b in range(3):
            assert counts[a, b] == sum(row[a] == row[b] for row in answers)


def test_one_that_guesses_is_told_from_two_that_know():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (4000,), generator=generator)
    answers = torch.randint(10, (4000, 3), generator=generator)
    for expert, right in ((0, 0.8), (2, 0.6)):
        knows = torch.rand(4000, generator=generator) < right
        answers[knows, expert] = labels[knows]
    estimated = GF.accuracies_from_agreement(GF.pairwise_agreement(answers) / 4000, 10)
    assert estimated[1] < 0.1
    assert bool((estimated[[0, 2]] > 0.6).all())
