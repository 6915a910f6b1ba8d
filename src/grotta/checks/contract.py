"""The checks themselves, each a function of a method's name."""

import copy
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from grotta.checks.networks import CLASSES, Norm, batches, networks_with, refusal, run, same, same_state, small_model
from grotta.methods import create, load
from grotta.methods.description import trained_parameters
from grotta.nn import storages

Check = Callable[[str], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Add ``function`` to the contract."""
    CHECKS[function.__name__] = function
    return function


def check_on_any_network(function: Check) -> Check:
    """Add ``function`` to the contract once for each kind of network: with these normalisation layers or none."""
    for norm in get_args(Norm):
        CHECKS[f"{function.__name__}, {norm} norm"] = partial(_check_with, norm, function)
    return function


def check_method(name: str) -> None:
    """Hold the method ``name`` to the whole contract.

    >>> check_method("source")
    """
    for function in CHECKS.values():
        function(name)


def _check_with(norm: Norm, function: Check, name: str) -> None:
    with networks_with(norm):
        function(name)


@check_on_any_network
def outputs_are_probabilities(name: str) -> None:
    """Rows in [0, 1] that sum to 1, for any batch size, changing between calls, uint8 or float."""
    adapter = create(name, small_model())
    for x in batches():
        for images in (x, (x * 255).to(torch.uint8)):
            probs = adapter(images)
            assert probs.shape == (len(x), CLASSES), f"shape {tuple(probs.shape)}"
            assert probs.dtype == torch.float32, f"dtype {probs.dtype}"
            assert probs.isfinite().all(), "not finite"
            assert probs.min() >= 0, "negative probability"
            assert (probs.sum(1) - 1).abs().max() < 1e-5, "rows do not sum to 1"
            assert not probs.requires_grad, "the output carries a graph"


@check
def bytes_and_floats_are_the_same_images(name: str) -> None:
    """uint8 images give what the same images give as floats."""
    as_bytes, as_floats = create(name, small_model()), create(name, small_model())
    for x in batches():
        images = (x * 255).to(torch.uint8)
        assert torch.allclose(as_bytes(images), as_floats(images.float() / 255), atol=1e-4), "uint8 and float differ"


@check_on_any_network
def callers_model_is_untouched(name: str) -> None:
    """Weights, buffers, modes, gradients and flags of the model are as before."""
    model = small_model().train()
    model[0].requires_grad_(False)
    model[3].eval()
    for parameter in model[6].parameters():
        parameter.grad = torch.ones_like(parameter)
    before = copy.deepcopy(model)
    run(create(name, model), batches())
    assert same_state(model.state_dict(), before.state_dict()), "weights or buffers changed"
    for (path, a), (_, b) in zip(model.named_modules(), before.named_modules()):
        assert type(a) is type(b), f"layer {path!r} was replaced"
        assert a.training == b.training, f"mode of {path!r} changed"
        assert len(a._forward_hooks) == len(a._forward_pre_hooks) == 0, f"hook left on {path!r}"
    for (path, p), (_, q) in zip(model.named_parameters(), before.named_parameters()):
        assert p.requires_grad == q.requires_grad, f"requires_grad of {path!r} changed"
        expected = torch.ones_like(p) if path.startswith("6.") else None
        untouched = p.grad is None if expected is None else p.grad is not None and torch.equal(p.grad, expected)
        assert untouched, f"gradient of {path!r} changed"


@check
def input_is_untouched(name: str) -> None:
    """The caller's batch is not written to."""
    adapter = create(name, small_model())
    for x in batches():
        kept = x.clone()
        adapter(x)
        assert torch.equal(x, kept), "the batch was changed"


@check_on_any_network
def same_seed_same_bits(name: str) -> None:
    """Two adapters with one seed agree to the bit, whatever the global generator does; which is left alone."""
    torch_state = torch.get_rng_state()
    first = run(create(name, small_model(), seed=3), batches())
    assert torch.equal(torch_state, torch.get_rng_state()), "the global generator was used"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        second = run(create(name, small_model(), seed=3), batches())
    assert same(first, second), "the same seed gave other bits"


@check_on_any_network
def predict_changes_nothing(name: str) -> None:
    """``predict`` gives the answer of the next call and leaves no trace."""
    adapter = create(name, small_model())
    for x in batches():
        state = adapter.state_dict()
        expected = adapter.predict(x)
        assert same_state(state, adapter.state_dict()), "predict changed the state"
        assert torch.allclose(adapter(x), expected, atol=1e-6), "predict and the call disagree"


@check_on_any_network
def the_two_halves_of_a_call_are_the_call(name: str) -> None:
    """``answer`` changes nothing; ``answer`` and ``learn_from`` give the bits of a call."""
    whole, halves = create(name, small_model(), seed=2), create(name, small_model(), seed=2)
    for x in batches():
        state = halves.state_dict()
        probs, pending = halves.answer(x)
        assert same_state(state, halves.state_dict()), "answer changed the state"
        assert torch.equal(probs, whole(x)), "answer and the call disagree"
        halves.learn_from(pending)
        assert same_state(whole.state_dict(), halves.state_dict()), "the two halves learn something else than the call"


@check_on_any_network
def what_adapts_is_described(name: str) -> None:
    """``describe`` says in one line how many parameters are trained, and a method that says nothing adapts nothing."""
    adapter = create(name, small_model())
    description = adapter.describe()
    trained = trained_parameters(adapter.optimizer)
    assert description.trained == sum(p.numel() for p in trained), "another number of trained parameters"
    assert str(description).startswith(f"{name}: "), f"not named: {description}"
    assert "\n" not in str(description), "more than one line"
    if not description.adapts:
        source = create("source", small_model())
        assert same(run(adapter, batches()), run(source, batches())), "it adapts more than it says"


@check_on_any_network
def saved_adapters_continue_as_if_nothing_had_happened(name: str) -> None:
    """save, load, continue: bit-identical to never having stopped."""
    model = small_model()
    adapter = create(name, model, seed=1)
    run(adapter, batches())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adapter.safetensors"
        adapter.save(path)
        loaded = load(path, model)
    assert same_state(adapter.state_dict(), loaded.state_dict()), "the loaded state differs"
    assert same(run(adapter, batches(seed=9)), run(loaded, batches(seed=9))), "the runs differ after loading"


@check
def states_are_copies(name: str) -> None:
    """A state taken is not moved by later steps, and loading it rolls back."""
    adapter = create(name, small_model())
    run(adapter, batches())
    state = adapter.state_dict()
    kept = copy.deepcopy(state)
    first = run(adapter, batches(seed=5))
    assert same_state(state, kept), "a later step moved a state that was taken"
    adapter.load_state_dict(state)
    assert same(run(adapter, batches(seed=5)), first), "rolling back does not repeat the run"
    assert same_state(state, kept), "running on moved a state that was loaded"


@check_on_any_network
def reset_is_a_new_beginning(name: str) -> None:
    """After ``reset`` everything is as newly created."""
    adapter = create(name, small_model())
    fresh = adapter.state_dict()
    first = run(adapter, batches())
    adapter.reset()
    assert adapter.last is None, "last is not None after reset"
    assert same_state(adapter.state_dict(), fresh), "reset does not restore the state"
    assert same(run(adapter, batches()), first), "the run after reset differs"


@check
def grad_modes_of_the_caller_do_not_matter(name: str) -> None:
    """Callers under ``no_grad`` or ``inference_mode`` are served like any other."""
    plain = run(create(name, small_model()), batches())
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            outside = create(name, small_model())
            assert same(run(outside, batches()), plain), f"another result under {mode.__name__}"
    adapter = create(name, small_model())
    with torch.inference_mode():
        inside = [adapter(x) for x in batches()]
    assert same(inside, plain), "another result for batches made under inference_mode"


@check_on_any_network
def frozen_weights_are_shared(name: str) -> None:
    """One copy of every weight that the method does not train: the model's own."""
    model = small_model()
    adapter = create(name, model)
    run(adapter, batches())
    trained = {n for n, p in adapter.named_parameters() if p.requires_grad}
    if any(n.endswith("body.0.weight") for n in trained):
        return  # the method trains all weights and must own them
    frozen = {n: p for n, p in adapter.named_parameters() if n.endswith(("body.0.weight", "body.6.weight"))}
    assert frozen, "no convolution found"
    owned = [n for n, p in frozen.items() if p.untyped_storage().data_ptr() not in storages(model)]
    assert not owned, f"copies of frozen weights: {owned}"


@check_on_any_network
def steps_are_reported(name: str) -> None:
    """``last`` describes the latest step in plain numbers."""
    adapter = create(name, small_model())
    assert adapter.last is None, "last before the first step"
    for number, x in enumerate(batches(), start=1):
        adapter(x)
        assert adapter.last is not None, "no StepInfo"
        info = adapter.last.as_dict()
        assert info["step"] == number, f"step {info['step']} after {number} batches"
        assert info["batch_size"] == len(x), "wrong batch_size"
        assert 0 <= info["zeta"] < 1, f"zeta {info['zeta']}"
        assert info["entropy"] > -1e-4, f"entropy {info['entropy']}"
        assert all(isinstance(v, int | float | bool | type(None)) for v in info.values()), "not plain numbers"


@check
def bad_input_is_refused_and_loses_nothing(name: str) -> None:
    """Every kind of bad batch raises an error that names ``x``; the next good one works as if it had not come."""
    x = next(batches((8,)))
    bad: dict[str, Any] = {
        "not a tensor": x.numpy(),
        "rank": x[0],
        "channels": x[:, :2],
        "dtype": (x * 255).to(torch.int64),
        "empty": x[:0],
        "NaN": x.clone().index_fill_(0, torch.tensor([3]), float("nan")),
        "infinite": x.clone().index_fill_(0, torch.tensor([3]), float("inf")),
        "range 0..255": x * 255,
        "normalised": (x - 0.5) / 0.2,
    }
    disturbed, undisturbed = create(name, small_model()), create(name, small_model())
    for good in batches():
        for what, images in bad.items():
            message = refusal(lambda images=images: disturbed(images), what)  # type: ignore[misc]
            assert "x " in message, f"{what}: the error does not name x: {message}"
        assert torch.equal(disturbed(good), undisturbed(good)), "a refused batch left a trace"


@check
def models_that_do_not_fit_are_refused(name: str) -> None:
    """Outputs other than logits of the right width are refused with an error that says what came."""

    class Wrapped(nn.Module):
        def __init__(self, wrap: Callable[[Tensor], Any]) -> None:
            super().__init__()
            self.net = small_model()
            self.wrap = wrap

        def forward(self, x: Tensor) -> Any:
            return self.wrap(self.net(x))

    wraps: dict[str, Callable[[Tensor], Any]] = {
        "NoneType": lambda y: None,
        "'hidden'": lambda y: {"hidden": y},
        "(2, 5, 1)": lambda y: y[:, :, None],
    }
    for what, wrap in wraps.items():
        message = refusal(lambda wrap=wrap: create(name, Wrapped(wrap)), what)  # type: ignore[misc]
        assert what in message, f"the error does not say what came ({what}): {message}"
    message = refusal(lambda: create(name, small_model(), num_classes=CLASSES + 1), "num_classes that disagree")
    assert "num_classes" in message, message


@check
def any_output_adaptation_fits(name: str) -> None:
    """Every output adaptation works with every method."""
    for output in (None, "bias_guided", "laplacian", "stream"):
        for probs in run(create(name, small_model(), output=output), batches()):
            assert (probs.sum(1) - 1).abs().max() < 1e-5, f"rows do not sum to 1 with output={output!r}"


@check
def double_precision_models_stay_double(name: str) -> None:
    """A float64 model is adapted in float64."""
    for probs in run(create(name, small_model(torch.float64)), batches()):
        assert probs.dtype == torch.float64, f"dtype {probs.dtype}"
