import pytest
import torch

import grotta
from grotta import checks
from grotta.checks import batches, same, same_state, small_model
from grotta.methods import create, load, method_class

METHODS = ["bn", "tent", "grotta"]


@pytest.mark.parametrize("method", METHODS)
def test_without_a_guard_nothing_is_different(method):
    plain, off = create(method, small_model()), create(method, small_model(), guard=False)
    for x in batches():
        assert torch.equal(plain(x), off(x))
    assert plain.state_dict().keys() == off.state_dict().keys()
    assert not {"guard", "rollbacks"} & set(plain.last.extra)


@pytest.mark.parametrize("method", METHODS)
def test_a_step_tells_what_the_guard_thinks(method):
    adapter = create(method, small_model(), guard=True)
    for x in batches():
        adapter(x)
    extra = adapter.last.extra
    assert {"estimated_accuracy", "source_accuracy", "agreement", "guard", "rollbacks"} <= extra.keys()
    assert all(0 <= extra[name] <= 1 for name in ("estimated_accuracy", "source_accuracy", "agreement"))


@pytest.mark.parametrize("method", METHODS)
def test_saved_and_resumed_goes_on_bit_for_bit(method, tmp_path):
    model = small_model()
    adapter = create(method, model, guard=True, seed=1)
    for x in batches((64,) * 10):
        adapter(x)
    adapter.save(tmp_path / "a.safetensors")
    loaded = load(tmp_path / "a.safetensors", model)
    assert same_state(adapter.state_dict(), loaded.state_dict())
    assert same([adapter(x) for x in batches((64,) * 10, 7)], [loaded(x) for x in batches((64,) * 10, 7)])
    assert same_state(adapter.state_dict(), loaded.state_dict())
    unguarded = create(method, model)
    with pytest.raises(ValueError, match=r"unexpected entry 'guard\."):
        unguarded.load_state_dict(adapter.state_dict())


def test_predictions_leave_no_trace_and_equal_the_next_answer():
    adapter = create("tent", small_model(), guard=True)
    for x in batches((64,) * 6):
        before = adapter.state_dict()
        expected = adapter.predict(x)
        assert same_state(before, adapter.state_dict())
        torch.testing.assert_close(adapter(x), expected)


@pytest.mark.parametrize("method", ["source", "grotta+"])
def test_methods_that_contain_the_source_take_the_option_and_pay_nothing(method):
    assert method_class(method).contains_source or method_class(method).adapts_nothing
    guarded, plain = create(method, small_model(), guard=True), create(method, small_model())
    for x in batches():
        assert torch.equal(guarded(x), plain(x))
    assert guarded.last.extra["guard"] == guarded.last.extra["rollbacks"] == 0
    assert not hasattr(guarded, "beside")


def test_a_flag_is_a_flag():
    with pytest.raises((TypeError, ValueError), match="guard"):
        create("tent", small_model(), guard="yes")


@pytest.mark.parametrize("check", checks.CHECKS, ids=str)
def test_a_guarded_method_keeps_the_contract(check, monkeypatch):
    def guarded(name, model, *args, **options):
        return create(name, model, *args, **{"guard": True, **options})

    monkeypatch.setattr(checks.contract, "create", guarded)
    checks.CHECKS[check]("tent")


def good_stream(images, labels, n=30, size=32):
    generator = torch.Generator().manual_seed(0)
    for _ in range(n):
        chosen = torch.randint(len(images), (size,), generator=generator)
        yield images[chosen], labels[chosen]


def test_a_poisoned_method_is_put_back():
    """TENT learns from noise until it says one thing only; with the guard it is of use again after twenty batches."""
    images, labels = (torch.as_tensor(a[:1000]) for a in grotta.data.load_clean("fashion", "test"))
    images = images.permute(0, 3, 1, 2).contiguous() if images.shape[1] != 3 else images
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    generator = torch.Generator().manual_seed(1)
    right = {}
    for guard in (False, True):
        adapter = create("tent", model, lr=0.02, guard=guard)
        for _ in range(16):
            adapter(torch.rand(32, *images.shape[1:], generator=generator))
        scores = [(adapter(x).argmax(1) == y.long()).float().mean().item() for x, y in good_stream(images, labels)]
        right[guard] = sum(scores[20:]) / 10
    source = create("source", model)
    expected = (
        sum((source(x).argmax(1) == y.long()).float().mean().item() for x, y in list(good_stream(images, labels))[20:])
        / 10
    )
    assert adapter.last.extra["rollbacks"] >= 1
    assert right[False] < expected - 0.2
    assert right[True] > expected - 0.08
