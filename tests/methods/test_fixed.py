"""Networks that never change are one for all adapters of a model."""

import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn

import grotta
from grotta.checks import batches, small_model
from grotta.methods import create
from grotta.nn import storages

FIXED = ("source", "instance", "bold")


def shared(first, second):
    return [name for name in FIXED if getattr(first, name) is getattr(second, name)]


def test_adapters_of_one_model_share_them():
    model = small_model()
    first, second = create("grotta+", model), create("grotta+", model, preset="lite")
    assert shared(first, second) == list(FIXED)
    assert shared(first, copy.deepcopy(first)) == list(FIXED)
    assert first.tracked is not second.tracked
    assert create("source", model).source is first.source is create("tent", model, guard=True).beside


def test_they_are_no_state_and_hold_nothing_of_their_own():
    adapter = create("grotta+", small_model(), train=True)
    parts = {"tracked", "trainer", "record", "order", "watch", "watched", "probed"}
    assert {name.split(".")[0] for name in adapter._own} == parts
    for name in FIXED:
        assert storages(getattr(adapter, name)) <= storages(adapter.model)
        assert not any(p.requires_grad for p in getattr(adapter, name).parameters())


def test_they_see_the_model_that_is_trained_further():
    model = small_model()
    adapter = create("grotta+", model)
    with torch.no_grad():
        model[1].running_mean += 1
        model[1].weight *= 2
    (x,) = batches((8,))
    for name in FIXED:
        torch.testing.assert_close(getattr(adapter, name)(x), getattr(create("grotta+", copy.deepcopy(model)), name)(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m[1], "eps", 0.5),
        lambda m: setattr(m[1], "running_mean", m[1].running_mean + 1),
        lambda m: m.__setitem__(2, nn.Tanh()),
        lambda m: m.double(),
    ],
)
def test_a_model_that_was_changed_gets_new_ones(change):
    model = small_model()
    first = create("grotta+", model)
    change(model)
    second = create("grotta+", model)
    assert shared(first, second) == []
    x = next(batches((8,))).to(second.dtype)
    assert torch.equal(second(x), create("grotta+", copy.deepcopy(model))(x))
    first.reset()
    assert shared(first, second) == list(FIXED)


def test_what_differs_is_not_shared():
    model = small_model()
    plain = create("grotta+", model)
    assert shared(plain, create("grotta+", model, k=3)) == ["source", "bold"]
    assert shared(plain, create("grotta+", model, ends_in="softmax")) == []
    normalised = create("grotta+", model, mean=[0.5] * 3)  # has tensors of its own, which are state
    assert shared(normalised, create("grotta+", model, mean=[0.5] * 3)) == []


def test_training_mode_does_not_matter():
    model = small_model()
    first = create("grotta+", model.train())
    assert shared(first, create("grotta+", model.eval())) == list(FIXED)
    assert not first.source.body.training


def test_they_go_with_the_last_adapter_and_keep_no_model():
    model = small_model()
    adapter = create("grotta+", model)
    adapter(next(batches((4,))))
    network, kept = weakref.ref(adapter.source), weakref.ref(model)
    del adapter
    gc.collect()
    assert network() is None
    adapter = create("grotta+", model)
    del model, adapter
    gc.collect()
    assert kept() is None


def test_streams_in_threads_do_not_disturb_each_other():
    model = small_model()
    streams = [list(batches((4, 1, 8) * 4, seed=seed)) for seed in range(4)]
    expected = []
    for xs in streams:
        adapter = create("grotta+", copy.deepcopy(model), preset="lite")
        expected.append([adapter(x) for x in xs])
    got = [[] for _ in streams]

    def run(place):
        adapter = create("grotta+", model, preset="lite")
        got[place].extend(adapter(x) for x in streams[place])

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(streams))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ours, theirs in zip(got, expected):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_a_damaged_state_of_one_cannot_reach_another(tmp_path):
    model = small_model()
    first, second = create("grotta+", model), create("grotta+", model)
    (x,) = batches((8,))
    before = second.predict(x)
    state = first.state_dict()
    first.load_state_dict({key: value + 1 if value.is_floating_point() else value for key, value in state.items()})
    first(x)
    assert torch.equal(second.predict(x), before)
    first.save(tmp_path / "s.safetensors")
    assert shared(grotta.load(tmp_path / "s.safetensors", model), second) == list(FIXED)
