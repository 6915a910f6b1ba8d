"""The twin answers as the learner would."""

import pytest
import torch

import grotta
from grotta.checks import batches, small_model
from grotta.serve.streams.pair import Pair, learns


@pytest.mark.parametrize("name", grotta.list_methods())
def test_a_twin_that_is_up_to_date_answers_as_the_library(name):
    """For every method, also after a reset; the learner's state is the library's, bit for bit."""
    pair, library = Pair(grotta.create(name, small_model())), grotta.create(name, small_model())
    for x in batches((8, 1, 64)):
        if learns(pair.learner):
            assert torch.allclose(pair.answer(x), library.predict(x), atol=1e-6)
            assert torch.equal(pair.learn(x), library(x))
        else:
            assert torch.equal(pair.answer(x), library(x))
    ours, theirs = pair.learner.state_dict(), library.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    pair.reset()
    x = next(batches((8,), seed=3))
    assert torch.allclose(pair.answer(x), grotta.create(name, small_model()).predict(x), atol=1e-6)


@pytest.mark.parametrize("name", ["grotta", "grotta+", "tent", "note"])
def test_a_restored_pair_goes_on_as_the_library_does(name):
    model = small_model()
    library, pair = grotta.create(name, model), Pair(grotta.create(name, model))
    for x in batches((8, 1, 64)):
        library(x)
    pair.learn(next(batches((8,), seed=5)))  # whatever it was before
    pair.restore(library.state_dict())
    for x in batches((4, 16), seed=3):
        assert torch.allclose(pair.answer(x), library.predict(x), atol=1e-6)
        assert torch.equal(pair.learn(x), library(x))


def test_answers_do_not_change_before_a_step_is_done():
    pair = Pair(grotta.create("tent", small_model()))
    x = next(batches((8,)))
    assert torch.equal(pair.answer(x), pair.learner.predict(x))  # nothing is under way before the first
    pair.learn(x)
    before = pair.answer(x)
    pair.learner(x)  # a step under way: the twin has not been told
    assert torch.equal(pair.answer(x), before)
    pair._follow()
    assert not torch.equal(pair.answer(x), before)


def test_a_pair_costs_norm_states_and_the_bank_not_weights():
    model = grotta.models.create_model("resnet20", num_classes=10)
    pair = Pair(grotta.create("grotta", model, capacity=100))
    weights = sum(p.nbytes for p in model.parameters())
    pair.learn(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))
    assert 100 * 3072 <= pair.nbytes() < 100 * 3072 + 2_500_000
    owned = sum(t.nbytes for n, t in pair.learner.named_parameters() if n in pair.learner._own)
    assert owned < weights / 10


def test_the_source_answers_while_the_guard_has_fallen_back():
    model = small_model()
    pair, source = Pair(grotta.create("tent", model, guard=True, lr=0.5)), grotta.create("source", model)
    x, y = batches((64, 64), seed=1)
    pair.learn(x)
    assert not torch.allclose(pair.answer(y), source.predict(y), atol=1e-3)
    pair.learner._guard.fallen = True
    pair._follow()
    assert torch.allclose(pair.answer(y), pair.learner.predict(y), atol=1e-6)
    assert torch.allclose(pair.answer(y), source.predict(y), atol=1e-6)
    pair.learner._guard.fallen = False
    pair._follow()
    assert torch.allclose(pair.answer(y), pair.learner.predict(y), atol=1e-6)
