"""Models as they come: what they return, what they are made of, and what is wrong with them."""

import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import grotta
from grotta.checks import CLASSES, batches, same_state, small_model


class Returns(nn.Module):
    """The small model, with its logits wrapped in something."""

    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.net, self.wrap = small_model(), wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.net(x))


class Named(NamedTuple):
    aux: Tensor
    logits: Tensor


class ModelOutput(OrderedDict):  # as Hugging Face's: a dict with attributes
    @property
    def logits(self) -> Tensor:
        return self["logits"]


@pytest.mark.parametrize(
    ("wrap", "field"),
    [
        (lambda y: {"loss": None, "logits": y}, None),
        (lambda y: ModelOutput(logits=y, hidden_states=(y, y)), None),
        (lambda y: Named(aux=y * 2, logits=y), None),
        (lambda y: (y, y * 2), None),
        (lambda y: [y * 2, y], 1),
        (lambda y: {"logits": y * 2, "scores": y}, "scores"),
        (lambda y: y[:, :, None, None], None),
    ],
)
def test_logits_are_found_in_what_a_model_returns(wrap: Any, field: Any) -> None:
    x = next(batches((8,)))
    adapter = grotta.create("tent", Returns(wrap), logits=field)
    assert adapter.num_classes == CLASSES
    assert torch.equal(adapter(x), grotta.create("tent", small_model())(x))


@pytest.mark.parametrize(
    ("wrap", "field", "says"),
    [
        (lambda y: {"a": y, "b": y}, None, "got a dict of 'a', 'b'; name the field that holds them with logits="),
        (lambda y: {"logits": y}, "scores", r"logits \(batch, classes\) under 'scores', got a dict of 'logits'"),
        (lambda y: (y,), 3, "under 3, got a tuple of 1"),
        (lambda y: None, None, "got NoneType"),
        (lambda y: y.argmax(1), None, "got a tensor of torch.int64"),
        (lambda y: (y.repeat(1, 3), y), None, "first tensor has 15 columns, and no layer .* as with logits=1"),
        (lambda y: y[:, :, None], None, r"logits of shape \(batch, classes\), got \(2, 5, 1\) for a batch of 2"),
    ],
)
def test_models_that_return_something_else_are_refused_when_they_are_wrapped(wrap: Any, field: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        grotta.create("tent", Returns(wrap), logits=field)


def test_a_classifier_that_is_a_1x1_convolution_is_found() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    adapter = grotta.create("grotta", model)
    assert (adapter.feature_layer, adapter.num_classes) == ("3", 6)
    x = next(batches((9,)))
    torch.testing.assert_close(
        grotta.create("source", model).infer(x).features, model.eval()[:3](x).mean((2, 3)).detach()
    )
    assert adapter(x).shape == (9, 6)


def test_the_classifier_is_the_last_layer_to_run_not_the_last_to_be_made() -> None:
    class Reversed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 7)
            self.squeeze = nn.Linear(4, 4)
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.squeeze(self.conv(x).mean((2, 3))))

    adapter = grotta.create("source", Reversed())
    assert (adapter.feature_layer, adapter.num_classes) == ("head", 7)


def test_a_model_that_ends_in_a_softmax_is_recognised_and_put_right() -> None:
    x = next(batches((8,)))
    model = nn.Sequential(*small_model(), nn.Softmax(dim=1)).eval()
    adapter = grotta.create("source", model)
    with pytest.warns(UserWarning, match='seems to end in a softmax.*ends_in="softmax"'):
        assert not torch.allclose(adapter(x), model(x), atol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter(x)  # said once
        torch.testing.assert_close(grotta.create("source", model, ends_in="softmax")(x), model(x).detach())
        grotta.create("source", model, ends_in="logits")(x)
    tent, plain = grotta.create("tent", model, ends_in="softmax"), grotta.create("tent", small_model())
    for images in batches((8, 16)):
        torch.testing.assert_close(tent(images), plain(images))
    with pytest.raises(ValueError, match="ends_in must be one of 'logits', 'softmax', 'sigmoid', got 'tanh'"):
        grotta.create("source", model, ends_in="tanh")


def sure_model() -> nn.Sequential:
    """The small model with a classifier that says no to most classes, as a trained one does."""
    model = small_model()
    with torch.no_grad():
        model[-1].bias.copy_(torch.tensor([-4.0, -5.0, 2.0, -4.0, -6.0]))
    return model


def test_a_model_that_ends_in_sigmoids_is_recognised_and_put_right() -> None:
    model = nn.Sequential(*sure_model(), nn.Sigmoid()).eval()
    with pytest.warns(UserWarning, match='seems to end in a sigmoid.*ends_in="sigmoid"'):
        grotta.create("source", model)(next(batches((64,))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("source", "tent", "grotta"):
            ours, plain = grotta.create(method, model, ends_in="sigmoid"), grotta.create(method, sure_model())
            for x in batches((8, 16)):
                torch.testing.assert_close(ours(x), plain(x), atol=1e-4, rtol=1e-3)


def test_logits_that_lie_in_the_unit_interval_by_chance_are_not_taken_for_probabilities() -> None:
    model = small_model()
    with torch.no_grad():
        model[-1].weight.mul_(0.01)
        model[-1].bias.copy_(torch.linspace(0.05, 0.6, CLASSES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grotta.create("source", model)(next(batches((8,))))


def test_a_softmax_in_half_precision_is_recognised() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = small_model()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x).bfloat16().softmax(1)

    with pytest.warns(UserWarning, match="seems to end in a softmax"):
        grotta.create("source", Half())(next(batches((8,))))


@pytest.mark.parametrize("method", ["bn", "tent", "note", "rotta", "grotta", "grotta+", "tribe"])
@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}])
def test_batch_norms_without_affine_or_without_statistics_are_served(method: str, options: dict[str, bool]) -> None:
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    norms = nn.BatchNorm2d(6, **options), nn.BatchNorm2d(8)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), norms[0], nn.ReLU(), nn.Conv2d(6, 8, 3), norms[1], pool, nn.Linear(8, 5))
    adapter = grotta.create(method, model)
    for x in batches((16, 64, 1)):
        assert (adapter(x).sum(1) - 1).abs().max() < 1e-5


def test_a_batch_norm_without_statistics_goes_on_normalising_by_the_batch() -> None:
    layer = nn.BatchNorm2d(4, track_running_stats=False)
    for factory in (grotta.nn.rbn(), grotta.nn.gpre_rbn(), grotta.nn.iabn(), grotta.nn.batch_stats()):
        x = torch.rand(3, 4, 5, 5)
        torch.testing.assert_close(grotta.nn.convert_norm(layer, factory)(x), layer.eval()(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_models_are_adapted_in_float32(dtype: torch.dtype, tmp_path: Any) -> None:
    half = small_model(dtype)
    with pytest.warns(UserWarning, match=f"model has {dtype} weights, .* runs on a float32 copy"):
        adapter = grotta.create("grotta", half)
    wide = grotta.create("grotta", small_model(dtype).float())
    for x in batches((8, 16)):
        assert torch.equal(adapter(x), wide(x))
    assert all(p.dtype == dtype for p in half.parameters())
    adapter.save(tmp_path / "a.safetensors")
    with pytest.warns(UserWarning, match="float32 copy"):
        loaded = grotta.load(tmp_path / "a.safetensors", half)
    assert same_state(adapter.state_dict(), loaded.state_dict())


@pytest.mark.parametrize("method", grotta.list_methods())
def test_images_may_have_any_number_of_channels(method: str) -> None:
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = nn.Sequential(nn.Conv2d(13, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), pool, nn.Linear(8, 5))
    adapter = grotta.create(method, model, **({"views": 2} if method == "cotta" else {}))
    for _ in range(2):
        assert adapter(torch.rand(64, 13, 12, 12)).shape == (64, 5)


def test_scripted_exported_and_quantised_models_are_refused_with_what_to_do() -> None:
    model, x = small_model().eval(), next(batches((2,)))
    what_to_do = r"pass the original float module, or adapt its predictions alone, as with grotta\.outputs\.create"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.trace(model, x)
        exported = torch.export.export(model, (x,))
        quantised = torch.ao.quantization.quantize_dynamic(small_model(), {nn.Linear})
    kinds = {"torch.jit.ScriptModule": scripted, "torch.export program": exported, "quant": quantised}
    for kind, fixed in [*kinds.items(), ("torch.export program", exported.module())]:
        with pytest.raises(TypeError, match=f"model is (a )?{kind}.*{what_to_do}"):
            grotta.create("grotta", fixed)
    probs = scripted(x).softmax(1).detach()
    for output in ("stream", "bias_guided", "laplacian"):
        torch.testing.assert_close(grotta.outputs.create(output, CLASSES)(probs).probs.sum(1), torch.ones(2))


def test_a_model_with_one_output_is_refused_with_what_to_do() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))
    with pytest.raises(ValueError, match=r"has one output: .* torch\.cat\(\(torch\.zeros_like\(z\), z\), 1\)"):
        grotta.create("tent", model)


def test_a_model_that_declares_no_classes_is_refused() -> None:
    model = small_model()
    model.num_classes = 0
    with pytest.raises(ValueError, match="the model has no classifier: its num_classes is 0"):
        grotta.create("tent", model)


def test_an_assertion_of_the_model_about_its_input_is_a_refusal_that_names_the_shape() -> None:
    class Picky(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            assert x.shape[2] in (32, 224), "Input height does not match"
            return super().forward(x)

    with pytest.raises(ValueError, match=r"refuses x of shape \(2, 3, 16, 16\): Input height does not match"):
        grotta.create("tent", Picky(*small_model()))(torch.rand(2, 3, 16, 16))


def test_a_normalisation_that_the_model_declares_is_asked_for() -> None:
    model = small_model()
    model.pretrained_cfg = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.2)}  # as timm's models have
    with pytest.warns(UserWarning, match=r"normalised with mean=\[0.5, 0.4, 0.3\] and std=\[0.2, 0.2, 0.2\]: pass"):
        grotta.create("source", model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grotta.create("source", model, mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.2])
        grotta.create("source", model, mean=[0, 0, 0])
        model.pretrained_cfg = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
        grotta.create("source", model)


class Around(nn.Module):
    """Uses the buffers of a norm layer without calling it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.unused = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        bn = self.bn
        y = F.batch_norm(self.conv(x), bn.running_mean, bn.running_var, bn.weight, bn.bias, False, 0.0, bn.eps)
        return self.head(y.mean((2, 3)))


def test_a_model_that_goes_around_its_norm_layer_is_noticed_on_the_first_batch() -> None:
    adapter = grotta.create("bn", Around())
    with pytest.warns(UserWarning, match="uses the statistics of 'bn' without calling the layer") as caught:
        adapter(next(batches((4,))))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter(next(batches((4,))))


class Caches(nn.Module):
    """Caches a function of its weights in evaluation mode, as LeViT does with its attention biases."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.table = small_model(), nn.Parameter(torch.linspace(0, 1, CLASSES))
        self.cache: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return self.net(x) + self.table * 2
        if "bias" not in self.cache:
            self.cache["bias"] = self.table * 2
        return self.net(x) + self.cache["bias"]


class DoesNotCache(Caches):
    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + self.table * 2


@pytest.mark.parametrize("method", ["cotta", "tent", "grotta"])
def test_what_models_cache_in_evaluation_mode_is_not_kept_from_pass_to_pass(method: str) -> None:
    options = {"views": 2, "lr": 0.1} if method == "cotta" else {}
    first, second = (grotta.create(method, model, **options) for model in (Caches(), DoesNotCache()))
    for x in batches((8, 16, 8)):
        first.predict(x)
        assert torch.equal(first(x), second(x))


def test_a_strided_1x1_convolution_of_few_channels_is_not_trained_in_channels_last() -> None:
    """In torch 2.13 that writes beyond its memory and may abort the process."""
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = nn.Sequential(nn.Conv2d(3, 48, 1, stride=2), nn.BatchNorm2d(48), nn.ReLU(), pool, nn.Linear(48, 5))
    formats = {}
    for method in ("cotta", "tent"):
        adapter = grotta.create(method, model, **({"views": 1} if method == "cotta" else {}))
        adapter(torch.rand(2, 3, 32, 32))
        formats[method] = adapter._format
    assert formats == {"cotta": torch.contiguous_format, "tent": torch.channels_last}


@pytest.mark.parametrize("method", grotta.list_methods())
def test_a_model_with_nan_weights_is_an_error_that_changes_nothing(method: str) -> None:
    model = small_model()
    with torch.no_grad():
        model[6].weight[0, 0] = float("nan")
    adapter = grotta.create(method, model)
    before = adapter.state_dict()
    for x in batches((8, 8)):
        with pytest.raises(FloatingPointError, match="the model's predictions hold NaN or infinity"):
            adapter(x)
    torch.testing.assert_close(adapter.state_dict(), before, rtol=0, atol=0, equal_nan=True)
    assert adapter.last is None


@pytest.mark.parametrize("method", ["pl", "tent", "ods", "note", "rotta", "grotta", "petta"])
def test_a_learning_rate_that_diverges_is_an_error_and_the_state_is_kept(method: str) -> None:
    adapter = grotta.create(method, small_model(), lr=1e25)
    stream = list(batches((64,) * 6))
    states = [adapter.state_dict()]

    def run() -> None:
        for x in stream:
            adapter(x)
            states.append(adapter.state_dict())

    with pytest.raises(FloatingPointError, match=f"hold NaN or infinity after . steps of '{method}': it has diverged"):
        run()
    before = states[-1]
    assert same_state(before, adapter.state_dict())
    assert all(tensor.isfinite().all() for tensor in before.values() if tensor.is_floating_point())
    adapter.reset()
    assert adapter.predict(stream[0]).isfinite().all()
