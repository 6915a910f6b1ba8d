import copy
import pickle
import warnings

import pytest
import torch
from torch import nn

import grotta
from grotta.checks import batches, small_model
from grotta.methods import precision


class Views(nn.Module):
    """A network that reshapes with ``view``, which channels_last features do not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 100, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.bn(self.conv(x)).view(len(x), -1))


class TwoHeads(nn.Module):
    """A network whose last linear layer does not run."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_model()
        self.unused = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def test_models_that_view_their_features_are_served() -> None:
    probs = grotta.create("grotta", Views())(next(batches((4,))))
    assert probs.shape == (4, 3)


def test_channels_last_and_contiguous_agree() -> None:
    first = grotta.create("grotta", small_model(), channels_last=True)
    second = grotta.create("grotta", small_model(), channels_last=False)
    for x in batches():
        torch.testing.assert_close(first(x), second(x), atol=1e-4, rtol=0)


def test_a_feature_layer_that_does_not_run_is_named_and_can_be_overridden() -> None:
    x = next(batches((4,)))
    with pytest.raises(ValueError, match="'unused' did not run"):
        grotta.create("grotta", TwoHeads())(x)
    assert grotta.create("grotta", TwoHeads(), feature_layer="net.6")(x).shape == (4, 5)


def test_features_are_the_input_of_the_last_linear_layer() -> None:
    model = small_model().eval()
    x = next(batches((4,)))
    adapter = grotta.create("source", model)
    torch.testing.assert_close(adapter.infer(x).features, model[:6](x).detach())


def test_a_classifier_that_is_a_convolution_is_served_when_it_is_named() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    adapter = grotta.create("grotta", model, num_classes=6, feature_layer="3")
    assert adapter(next(batches((9,)))).shape == (9, 6)
    with pytest.raises(ValueError, match="num_classes cannot be inferred"):
        grotta.create("grotta", model, feature_layer="3")


def test_mean_and_std_wrap_a_model_that_expects_normalised_input() -> None:
    model, mean, std = small_model().eval(), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    x = next(batches((4,)))
    m, s = torch.tensor(mean).view(1, 3, 1, 1), torch.tensor(std).view(1, 3, 1, 1)
    probs = grotta.create("source", model, mean=mean, std=std)(x)
    torch.testing.assert_close(probs, model((x - m) / s).softmax(1).detach())


def test_another_image_size_is_refused_once_the_memory_holds_images() -> None:
    adapter = grotta.create("grotta", small_model())
    adapter(torch.rand(4, 3, 12, 12))
    with pytest.raises(ValueError, match=r"images of shape \(3, 12, 12\).*got \(3, 16, 16\)"):
        adapter(torch.rand(4, 3, 16, 16))
    state = adapter.state_dict()
    adapter.reset()
    adapter(torch.rand(4, 3, 16, 16))
    adapter.load_state_dict(state)
    adapter(torch.rand(4, 3, 12, 12))


def test_autocast_is_refused_with_a_warning_where_the_cpu_has_no_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_cpu_has_bfloat16", lambda: False)
    x = next(batches((16,)))
    expected = grotta.create("grotta", small_model())(x)
    adapter = grotta.create("grotta", small_model())
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.warns(UserWarning, match="autocast is ignored"):
        probs = adapter(x)
    assert torch.equal(probs, expected)


@pytest.mark.parametrize("method", grotta.list_methods())
def test_autocast_is_followed_where_the_cpu_has_bfloat16(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_cpu_has_bfloat16", lambda: True)
    adapter, wide = grotta.create(method, small_model()), grotta.create(method, small_model())
    for x in batches((64, 7, 64)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            probs = adapter(x)
        assert probs.dtype == torch.float32
        assert probs.isfinite().all()
        wide(x)
    assert adapter.last.entropy == pytest.approx(wide.last.entropy, abs=0.15)


def test_wrapped_and_compiled_models_are_looked_through() -> None:
    model = small_model()
    x = next(batches((4,)))
    expected = grotta.create("grotta", model)(x)
    assert torch.equal(grotta.create("grotta", nn.DataParallel(model))(x), expected)
    assert torch.equal(grotta.create("grotta", torch.compile(model))(x), expected)


def test_an_adapter_stays_where_its_model_is() -> None:
    with pytest.raises(RuntimeError, match="move or cast the model"):
        grotta.create("grotta", small_model()).to(torch.float64)


def test_adapters_are_not_pickled() -> None:
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(grotta.create("grotta", small_model()))


def test_a_copy_is_a_second_adapter_in_the_same_state() -> None:
    adapter = grotta.create("grotta", small_model(), seed=4)
    adapter(next(batches((16,))))
    twin = copy.deepcopy(adapter)
    for x in batches(seed=2):
        assert torch.equal(adapter(x), twin(x))


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown method 'tnet'; there are source, bn"):
        grotta.create("tnet", small_model())
    with pytest.raises(ValueError, match="no preset 'best'; it has paper"):
        grotta.create("grotta", small_model(), preset="best")
    with pytest.raises(TypeError, match="alhpa"):
        grotta.create("grotta", small_model(), alhpa=0.1)


def test_something_else_than_a_module_is_refused() -> None:
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, got function"):
        grotta.create("source", lambda x: x)


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    adapter = grotta.create("grotta", small_model())
    adapter(next(batches((16,))))
    before = adapter.state_dict()
    key = next(k for k in before if k.endswith("running_mean"))
    bad = [
        {k: v for k, v in before.items() if k != key},
        {**before, "network.other": torch.zeros(1)},
        {**before, key: torch.zeros(99)},
        {**before, "nonsense": torch.zeros(1)},
        {k: v for k, v in before.items() if k != "generator"},
        {k: v for k, v in before.items() if not k.startswith("memory.")},
    ]
    for state in bad:
        with pytest.raises(ValueError):
            adapter.load_state_dict(state)
    after = adapter.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_a_resnet50_adapter_holds_one_copy_of_its_weights() -> None:
    model = grotta.models.create_model("resnet50", num_classes=1000)
    adapter = grotta.create("grotta", model)

    def size(module: nn.Module) -> int:
        held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in module.parameters()}
        held |= {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in module.buffers()}
        return sum(held.values())

    assert size(adapter) <= 1.15 * size(model)
    assert len(grotta.nn.storages(adapter) - grotta.nn.storages(model)) == 3 * 4 * len(
        grotta.nn.norm_layers(adapter.teacher)
    )


def test_nothing_is_warned_about_in_ordinary_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter = grotta.create("grotta", small_model())
        for x in batches():
            adapter(x)


def test_check_input_can_be_left_out() -> None:
    adapter = grotta.create("source", small_model(), check_input=False)
    assert adapter(next(batches((2,))) * 3).shape == (2, 5)


def test_images_without_a_strong_view_are_refused_before_anything_is_remembered() -> None:
    model = nn.Sequential(nn.Conv2d(5, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    adapter = grotta.create("grotta", model)
    with pytest.raises(ValueError, match=r"x must be a non-empty \(B, 3 or 1, H, W\) batch"):
        adapter(torch.rand(2, 5, 8, 8))
    assert len(adapter.bank) == 0
