"""A call in two halves: answer now, learn later."""

import pytest
import torch

import grotta
from grotta.checks import batches, same_state, small_model

FAST = {"cotta": {"views": 2}}


def make(method: str, **options):
    return grotta.create(method, small_model(), seed=3, **FAST.get(method, {}), **options)


@pytest.mark.parametrize("method", grotta.list_methods())
def test_the_two_halves_are_the_whole(method):
    whole, halves = make(method), make(method)
    for x in batches((8, 64, 1, 70)):
        before = halves.state_dict()
        probs, pending = halves.answer(x)
        assert same_state(before, halves.state_dict())
        assert torch.equal(probs, whole(x))
        info = halves.learn_from(pending)
        assert info is halves.last
        assert info.as_dict() == whole.last.as_dict()
        assert same_state(whole.state_dict(), halves.state_dict())


@pytest.mark.parametrize("method", grotta.list_methods())
def test_batches_answered_before_earlier_ones_were_learned_are_learned_in_order(method):
    """The answers are those of the state that gave them; the learning is the same however often it is repeated."""
    stream = list(batches((16, 64, 16)))

    def run():
        adapter = make(method)
        expected = [adapter.predict(x) for x in stream]
        answered = [adapter.answer(x) for x in stream]
        assert all(torch.equal(a, b) for a, (b, _) in zip(expected, answered))
        for _, pending in answered:
            adapter.learn_from(pending)
        assert adapter.step == 3
        return adapter.state_dict()

    assert same_state(run(), run())


def test_late_learning_uses_the_prediction_made_at_answer_time():
    adapter = make("grotta")
    first, second = batches((64, 64))
    _, early = adapter.answer(first)
    _, late = adapter.answer(second)
    labels = late.prediction.logits.argmax(1)
    adapter.learn_from(early)
    before = adapter.bank.counts()
    adapter.learn_from(late)
    added = adapter.bank._written - torch.bincount(early.prediction.logits.argmax(1), minlength=5)
    assert torch.equal(added, torch.bincount(labels, minlength=5))
    assert adapter.bank.counts().sum() >= before.sum()


def test_methods_that_train_on_their_prediction_descend_from_the_present_parameters():
    """TENT learning two batches that were answered together: the second gradient is that of a pass made now."""
    first, second = batches((16, 16))
    together, by_turns = make("tent"), make("tent")
    pending = [together.answer(x)[1] for x in (first, second)]
    for each in pending:
        together.learn_from(each)
    by_turns(first)
    by_turns(second)
    state = by_turns.state_dict()
    assert all(torch.allclose(state[key], value) for key, value in together.state_dict().items())


def test_the_batch_and_the_answer_may_be_overwritten_before_the_learning():
    x = next(batches((16,)))
    whole, halves = make("grotta"), make("grotta")
    whole(x.clone())
    probs, pending = halves.answer(x)
    x.zero_()
    probs.zero_()
    halves.learn_from(pending)
    assert same_state(whole.state_dict(), halves.state_dict())


def test_a_pending_batch_is_learned_once_and_by_its_own_adapter():
    adapter, other = make("tent"), make("tent")
    _, pending = adapter.answer(next(batches((8,))))
    with pytest.raises(ValueError, match="that of another adapter"):
        other.learn_from(pending)
    adapter.learn_from(pending)
    with pytest.raises(ValueError, match="learned from already"):
        adapter.learn_from(pending)
    with pytest.raises(TypeError, match=r"pending must be what answer\(\) returned, got Tensor"):
        adapter.learn_from(torch.zeros(1))
    assert (len(pending), repr(pending)) == (8, "Pending(8 images, learned)")


@pytest.mark.parametrize("method", ["tent", "cotta", "grotta"])
def test_a_batch_answered_before_a_reset_can_still_be_learned(method):
    adapter = make(method)
    x = next(batches((8,)))
    adapter(x)
    _, pending = adapter.answer(x)
    adapter.reset()
    assert adapter.learn_from(pending).step == 1
