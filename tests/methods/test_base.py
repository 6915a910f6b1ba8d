import copy
import pickle
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import grotta
from grotta.checks import batches, same_state, small_model
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


def test_a_layer_that_does_not_run_is_not_the_classifier_and_is_refused_as_one() -> None:
    x = next(batches((4,)))
    assert torch.equal(grotta.create("grotta", TwoHeads())(x), grotta.create("grotta", small_model())(x))
    with pytest.raises(ValueError, match="feature_layer must run in the model's forward, got 'unused'"):
        grotta.create("grotta", TwoHeads(), feature_layer="unused")


def test_features_are_the_input_of_the_last_linear_layer() -> None:
    model = small_model().eval()
    x = next(batches((4,)))
    adapter = grotta.create("source", model)
    torch.testing.assert_close(adapter.infer(x).features, model[:6](x).detach())


def test_mean_and_std_wrap_a_model_that_expects_normalised_input() -> None:
    model, mean, std = small_model().eval(), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    x = next(batches((4,)))
    m, s = torch.tensor(mean).view(1, 3, 1, 1), torch.tensor(std).view(1, 3, 1, 1)
    probs = grotta.create("source", model, mean=mean, std=std)(x)
    torch.testing.assert_close(probs, model((x - m) / s).softmax(1).detach())


def test_the_memory_starts_over_when_the_image_size_changes() -> None:
    adapter = grotta.create("grotta", small_model())
    adapter(torch.rand(4, 3, 12, 12))
    state = adapter.state_dict()
    with pytest.warns(UserWarning, match=r"from \(3, 12, 12\) to \(3, 16, 16\): the memory starts over"):
        adapter(torch.rand(5, 3, 16, 16))
    assert len(adapter.bank) == 5
    adapter(torch.rand(5, 3, 16, 16))
    assert adapter.step == 3
    adapter.load_state_dict(state)
    with pytest.warns(UserWarning, match="the memory starts over"):
        adapter(torch.rand(4, 3, 16, 16))


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
    adapter = grotta.create("grotta", small_model())
    with pytest.raises(ValueError, match="x must be at least . pixels high and wide"):
        adapter(torch.rand(2, 3, 12, 1))
    assert len(adapter.bank) == 0


@pytest.mark.parametrize("method", grotta.list_methods())
def test_train_mode_does_not_reach_the_networks(method: str) -> None:
    model = nn.Sequential(*small_model()[:6], nn.Dropout(0.5), small_model()[6])
    before = copy.deepcopy(model.state_dict())
    adapter = grotta.create(method, model, seed=1)
    nn.ModuleList([adapter]).train()
    x = next(batches((8,)))
    assert torch.equal(adapter.predict(x), adapter.predict(x))
    adapter(x)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("method", grotta.list_methods())
def test_the_caller_may_train_its_model_beside_the_adapter(method: str) -> None:
    model = small_model().train()
    adapter = grotta.create(method, model)
    x = next(batches((8,)))
    loss = nn.functional.cross_entropy(model(x), torch.zeros(8, dtype=torch.int64))
    adapter(x)
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())


class Interrupts(nn.Module):
    """A network that is interrupted in its n-th pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_model()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        COUNTDOWN[0] -= 1
        if COUNTDOWN[0] == 0:
            raise KeyboardInterrupt
        return self.net(x)


COUNTDOWN = [0]


@pytest.mark.parametrize("method", ["grotta", "rotta", "note"])
def test_statistics_are_held_still_after_an_interrupt(method: str) -> None:
    adapter = grotta.create(method, Interrupts())
    before = adapter.state_dict()
    x = next(batches((64,)))
    COUNTDOWN[0] = 2  # the pass after the prediction
    with pytest.raises(KeyboardInterrupt):
        adapter(x)
    state = adapter.state_dict()
    assert same_state(before, state)
    adapter.predict(x)
    after = adapter.state_dict()
    assert all(torch.equal(state[key], after[key]) for key in state)


@pytest.mark.parametrize("change", [lambda m: m.double(), lambda m: m.load_state_dict(m.state_dict(), assign=True)])
def test_a_model_with_other_weights_by_now_is_noticed(change, tmp_path) -> None:
    model = small_model()
    adapter = grotta.create("grotta", model)
    adapter(next(batches((8,))))
    change(model)
    model[0].weight.data = model[0].weight.data.clone()
    with pytest.raises(RuntimeError, match="wrap the model again"):
        adapter.save(tmp_path / "a.safetensors")
    adapter.reset()
    adapter(next(batches((8,))))
    adapter.save(tmp_path / "a.safetensors")


class InPlace(nn.Module):
    """A network that normalises its input in place."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.net, self.in_place = small_model(), in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x.sub_(0.5).div_(0.25) if self.in_place else (x - 0.5) / 0.25)


@pytest.mark.parametrize("method", grotta.list_methods())
@pytest.mark.parametrize("channels_last", [True, False])
def test_models_that_write_to_their_input_harm_nothing(method: str, channels_last: bool) -> None:
    first = grotta.create(method, InPlace(True), channels_last=channels_last)
    second = grotta.create(method, InPlace(False), channels_last=channels_last)
    for x in batches((64, 8)):
        kept = x.clone()
        torch.testing.assert_close(first(x), second(x))
        assert torch.equal(x, kept)


class Tokens(nn.Module):
    """A network that classifies every position and averages."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(input=self.bn(self.conv(x)).flatten(2).transpose(1, 2)).mean(1)


def test_features_of_positions_are_averaged_over_the_positions() -> None:
    model = Tokens().eval()
    x = next(batches((4,)))
    expected = model.bn(model.conv(x)).mean((2, 3))
    torch.testing.assert_close(grotta.create("source", model).infer(x).features, expected.detach())


def test_weights_that_hooks_compute_are_served() -> None:
    model = small_model()
    with pytest.warns(FutureWarning, match="weight_norm"):
        nn.utils.weight_norm(model[0])
    prune.l1_unstructured(model[6], "weight", 0.5)
    model(torch.rand(2, 3, 12, 12))
    model.stash = [model[:3](torch.rand(2, 3, 12, 12))]
    x = next(batches((4,)))
    torch.testing.assert_close(grotta.create("source", model)(x), model.eval()(x).softmax(1).detach())


def test_synchronised_norms_of_flat_features_are_served() -> None:
    head = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 5))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(*small_model()[:6], head))
    assert grotta.create("grotta", model)(next(batches((6,)))).shape == (6, 5)


def test_the_memory_format_is_given_up_when_a_later_batch_cannot_keep_it() -> None:
    class Flattens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.bn(self.conv(x))
            return self.fc(y.view(len(y), 4 * y.shape[2] * y.shape[3]).view(len(y), 4, -1).mean(2))

    adapter = grotta.create("source", Flattens())
    adapter(torch.rand(2, 3, 3, 3))
    adapter(torch.rand(2, 3, 8, 8))


def test_models_with_other_state_than_tensors_are_saved(tmp_path) -> None:
    class Extra(nn.Sequential):
        def get_extra_state(self) -> dict[str, int]:
            return {"version": 3}

        def set_extra_state(self, state: dict[str, int]) -> None:
            pass

    model = Extra(*small_model())
    grotta.create("grotta", model).save(tmp_path / "a.safetensors")
    grotta.load(tmp_path / "a.safetensors", model)


def test_a_buffer_that_is_not_saved_still_tells_models_apart(tmp_path) -> None:
    models = [grotta.models.create_model("fashion_resnet8", weights="bundled") for _ in range(2)]
    buffer = next(b for name, b in models[1].named_buffers() if name not in models[1].state_dict())
    buffer += 0.1
    grotta.create("grotta", models[0]).save(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="another model"):
        grotta.load(tmp_path / "a.safetensors", models[1])


def test_numpy_numbers_are_numbers() -> None:
    import numpy as np

    adapter = grotta.create("grotta", small_model(), capacity=np.int64(50), alpha=np.float32(0.5), seed=np.int64(3))
    assert (adapter.capacity, adapter.alpha, adapter.seed) == (50, 0.5, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mean": 0.5}, "mean must hold"),
        ({"mean": "abc"}, "mean must hold"),
        ({"k": "a"}, "k must"),
        ({"lam": 9}, "lam must"),
        ({"affinity": "zzz"}, "affinity must"),
        ({"check_input": "no"}, "check_input must be True or False"),
        ({"capcity": 5}, "method 'tent' has no option 'capcity'; it has affinity"),
    ],
)
def test_bad_common_options_are_refused_by_name(options: dict[str, object], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        grotta.create("tent", small_model(), **options)


def test_channels_that_disagree_with_the_mean_are_named() -> None:
    adapter = grotta.create("source", small_model(), mean=[0.5] * 3, std=[0.5] * 3)
    with pytest.raises(ValueError, match="x has 1 channels, but mean is given for 3"):
        adapter(torch.rand(2, 1, 12, 12))


def test_states_that_do_not_fit_in_one_number_change_nothing() -> None:
    adapter = grotta.create("tent", small_model())
    adapter(next(batches((16,))))
    before = adapter.state_dict()
    first = next(key for key in before if key.startswith("optimizer.") and key.endswith("exp_avg"))
    for change in (
        {"generator": before["generator"][:10]},
        {"step": torch.tensor(-5)},
        {"step": torch.tensor(0.5)},
        {first: torch.zeros(3, 3)},
        {"optimizer.99.exp_avg": torch.zeros(1)},
        {"memory.images": torch.zeros(1)},
        {"method": torch.tensor(list(b"bn"), dtype=torch.uint8)},
    ):
        with pytest.raises(ValueError):
            adapter.load_state_dict({**before, **change})
        after = adapter.state_dict()
        assert all(torch.equal(before[key], after[key]) for key in before)
    sgd = grotta.create("tent", small_model(), optimizer="sgd")
    with pytest.raises(ValueError, match="does not fit this SGD"):
        sgd.load_state_dict(before)


def test_cotta_runs_under_deterministic_algorithms() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        grotta.create("cotta", small_model(), views=2)(next(batches((8,))))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("method", grotta.list_methods())
def test_another_default_device_does_not_matter(method: str) -> None:
    adapter = grotta.create(method, small_model())
    stream = list(batches((64, 8)))
    with torch.device("meta"):
        for x in stream:
            assert adapter(x).device.type == "cpu"


def test_a_parent_may_ask_an_adapter_to_stay() -> None:
    nn.ModuleList([grotta.create("grotta", small_model())]).to("cpu")


@pytest.mark.parametrize("method", grotta.list_methods())
def test_a_parent_saves_and_loads_its_adapters(method: str) -> None:
    first, other = (nn.ModuleDict({"a": grotta.create(method, small_model()), "b": nn.Linear(2, 2)}) for _ in range(2))
    stream = list(batches((16, 8, 8)))
    first["a"](stream[0])
    assert not any(other.load_state_dict(first.state_dict()))  # no key missing, none unexpected
    assert all(torch.equal(first["a"](x), other["a"](x)) for x in stream[1:])


def test_a_parent_says_what_does_not_fit_its_adapter() -> None:
    parent = nn.ModuleDict({"a": grotta.create("tent", small_model())})
    state = grotta.create("grotta", small_model()).state_dict()
    with pytest.raises(RuntimeError, match="a: the state is one of the method 'grotta', not of 'tent'"):
        parent.load_state_dict({f"a.{key}": tensor for key, tensor in state.items()})
    with pytest.raises(RuntimeError, match="a: the state of an adapter needs an entry"):
        parent.load_state_dict({})
