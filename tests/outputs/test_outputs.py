"""Output adaptations: found by name, checked when they are made, and saved with the adapter if they keep state."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

import grotta
from grotta import functional as GF
from grotta import outputs
from grotta.checks import batches, small_model
from grotta.outputs.registry import _OUTPUTS


def some_batch(n: int = 12, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, classes, generator=generator).softmax(1), torch.randn(n, 7, generator=generator)


class RunningMean(outputs.OutputAdaptation):
    """Mixes every batch with the mean of all predictions before it."""

    def __init__(self, num_classes: int, *, share: float = 0.5) -> None:
        super().__init__(num_classes)
        self.share = share
        self.reset()

    def reset(self) -> None:
        self.total, self.seen = torch.zeros(self.num_classes), torch.tensor(0)

    def refine(self, probs: Tensor, features: Tensor) -> outputs.Output:
        if not self.seen:
            return outputs.Output(probs, GF.imbalance_score(probs))
        mixed = torch.lerp(probs, self.total / self.seen, self.share)
        return outputs.Output(mixed, GF.imbalance_score(probs), numbers={"seen": self.seen, "share": self.share})

    def observe(self, probs: Tensor, features: Tensor, output: outputs.Output) -> None:
        self.total = self.total + probs.sum(0)
        self.seen = self.seen + len(probs)

    def state_dict(self) -> dict[str, Tensor]:
        return {"total": self.total.clone(), "seen": self.seen.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if set(state) != {"total", "seen"}:
            raise ValueError(f"state must have total and seen, got {sorted(state)}")
        self.total, self.seen = state["total"].clone(), state["seen"].clone()


@pytest.fixture
def running_mean(monkeypatch):
    monkeypatch.setattr(outputs.registry, "_OUTPUTS", dict(_OUTPUTS))
    outputs.register("running_mean")(RunningMean)
    return "running_mean"


def test_the_two_of_the_paper_are_the_pure_functions():
    probs, features = some_batch()
    for options in ({}, {"k": 3}, {"affinity": "rbf", "sigma": 0.5}, {"lam": 0.6}):
        refined = GF.bias_guided_refine(probs, features, **options)
        output = outputs.create("bias_guided", 5, **options)(probs, features)
        assert all(torch.equal(a, b) for a, b in zip(refined, output[:3]))
    for options in ({}, {"k": 3, "affinity": "linear"}):
        output = outputs.create("laplacian", 5, **options)(probs, features)
        assert torch.equal(output.probs, GF.laplacian_refine(probs, features, **options))
        assert torch.equal(output.zeta, GF.imbalance_score(probs))
    assert outputs.create(None, 5)(probs, features).probs is probs


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("smooth", {}, "output must be one of None, 'bias_guided', 'laplacian'.*got 'smooth'"),
        ("bias_guided", {"neighbours": 3}, "'bias_guided' has no option 'neighbours'; it has k, affinity, sigma, lam"),
        ("bias_guided", {"affinity": "linear"}, "affinity must be one of 'knn', 'rbf', got 'linear'"),
        ("laplacian", {"k": 0}, "k must be at least 1, got 0"),
        (None, {"k": 3}, "None has no option 'k'; it has none"),
    ],
)
def test_mistakes_are_found_before_the_first_batch(name, options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        outputs.create(name, 5, **options)
    with pytest.raises((TypeError, ValueError), match=says):
        grotta.create("tent", small_model(), output=name, output_options=options)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="'laplacian' is registered already: Laplacian"):
        outputs.register("laplacian")(RunningMean)


def test_options_go_in_one_mapping_or_as_the_keywords_of_before():
    x = next(batches((16,)))
    flat = grotta.create("tent", small_model(), output="bias_guided", k=2, affinity="rbf", sigma=0.3)
    mapped = grotta.create(
        "tent", small_model(), output="bias_guided", output_options={"k": 2, "affinity": "rbf", "sigma": 0.3}
    )
    assert torch.equal(flat(x), mapped(x))
    both = grotta.create("grotta", small_model(), k=9, output_options={"k": 2})
    assert both.output.k == 2
    with pytest.raises(TypeError, match="output_options must be a mapping of names to values, got 'k=3'"):
        grotta.create("tent", small_model(), output="laplacian", output_options="k=3")


def test_keywords_that_an_adaptation_does_not_have_are_checked_and_ignored():
    grotta.create("tent", small_model(), output="laplacian", sigma=2.0, affinity="linear")
    with pytest.raises(ValueError, match="sigma must be positive, got -1"):
        grotta.create("tent", small_model(), output="laplacian", sigma=-1)


def test_state_moves_with_calls_and_not_with_predictions(running_mean):
    adapter = grotta.create("source", small_model(), output=running_mean)
    plain = grotta.create("source", small_model())
    first, second, third = batches((8, 8, 4))
    assert torch.equal(adapter.predict(first), plain(first))
    assert torch.equal(adapter(first), plain(first))
    expected = torch.lerp(plain(second), plain(first).mean(0), 0.5)
    torch.testing.assert_close(adapter.predict(second), expected)
    torch.testing.assert_close(adapter(second), expected)
    assert adapter.last.extra == {"seen": 8.0, "share": 0.5}
    assert adapter.last.as_dict()["seen"] == 8.0
    torch.testing.assert_close(adapter(third), torch.lerp(plain(third), plain(torch.cat((first, second))).mean(0), 0.5))


def test_state_is_saved_restored_and_reset_with_the_adapter(running_mean, tmp_path):
    model = small_model()
    adapter = grotta.create("tent", model, output=running_mean, output_options={"share": 0.25})
    stream = list(batches((8, 8, 8)))
    fresh = [adapter(x) for x in stream]
    adapter.save(tmp_path / "a.safetensors")
    loaded = grotta.load(tmp_path / "a.safetensors", model)
    assert loaded.state_dict()["output.seen"] == 24
    assert all(torch.equal(adapter(x), loaded(x)) for x in stream)
    adapter.reset()
    assert all(torch.equal(adapter(x), y) for x, y in zip(stream, fresh))


def test_states_without_an_output_begin_it_anew_and_bad_ones_change_nothing(running_mean):
    adapter = grotta.create("tent", small_model(), output=running_mean)
    for x in batches((8, 8)):
        adapter(x)
    state = adapter.state_dict()
    with pytest.raises(ValueError, match="must have total and seen"):
        adapter.load_state_dict({**state, "output.other": torch.zeros(1)})
    assert all(torch.equal(state[key], value) for key, value in adapter.state_dict().items())
    adapter.load_state_dict({key: value for key, value in state.items() if not key.startswith("output.")})
    assert adapter.state_dict()["output.seen"] == 0
    with pytest.raises(ValueError, match="'bias_guided' has no state"):
        grotta.create("tent", small_model(), output="bias_guided").load_state_dict(state)


def test_an_output_keeps_its_state_when_the_memory_refuses_its_own(running_mean):
    adapter = grotta.create("grotta", small_model(), output=running_mean)
    adapter(next(batches((8,))))
    state = adapter.state_dict()
    with pytest.raises(ValueError):
        adapter.load_state_dict({**state, "output.seen": torch.tensor(99), "memory.written": torch.zeros(2)})
    assert adapter.state_dict()["output.seen"] == 8
