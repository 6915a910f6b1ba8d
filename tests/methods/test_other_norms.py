"""Networks without batch normalisation: what can adapt does, and what is adapted is said."""

import logging
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import grotta
from grotta.checks import ChannelNorm, batches, networks_with, small_model


class Hybrid(nn.Module):
    """Batch normalisation in the stem, layer normalisation before the head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.ln, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.ln(F.relu(self.bn(self.conv(x))).mean((2, 3))))


def test_tent_on_layer_norm_is_one_adam_step_down_the_entropy():
    """By hand: entropy of the model itself, its gradient for the two affine layers, one step of torch's Adam."""
    model, x = small_model(torch.float64, norm="layer"), next(batches((16,))).double()
    reference = small_model(torch.float64, norm="layer")
    affine = [p for layer in reference.modules() if isinstance(layer, ChannelNorm) for p in layer.parameters()]
    probs = reference(x).softmax(1)
    entropy = -(probs * probs.log()).sum(1).mean()
    for parameter, gradient in zip(affine, torch.autograd.grad(entropy, affine)):
        parameter.grad = gradient
    torch.optim.Adam(affine, lr=1e-3).step()
    adapter = grotta.create("tent", model)
    torch.testing.assert_close(adapter(x), probs.detach())
    torch.testing.assert_close(adapter(x), reference(x).softmax(1).detach())


# An untrained network is sure of nothing: filters that let through what they are shown.
OPEN = {
    "eata": {"margin": 1.0, "redundancy": 1.0},
    "rdumb": {"margin": 1.0, "redundancy": 1.0},
    "sar": {"margin": 1.0},
    "deyo": {"margin": 1.0, "shape": -1.0},
    "tribe": {"margin": 1.0},
}
TRAINING = ["pl", "tent", "note", "ods", "rotta", "grotta", *OPEN, "roid", "petta"]


@pytest.mark.parametrize("norm", ["group", "layer"])
@pytest.mark.parametrize("method", TRAINING)
def test_methods_train_the_affine_parameters_of_other_norms(method, norm):
    adapter = grotta.create(method, small_model(norm=norm), **OPEN.get(method, {}))
    assert adapter.describe().trained == 2 * (6 + 8)
    trained = [p for group in adapter.optimizer.param_groups for p in group["params"]]
    before = [p.detach().clone() for p in trained]
    if hasattr(adapter, "calibrate"):
        adapter.calibrate(next(batches((64,), seed=9)))
    for x in batches((64, 64)):
        adapter(x)
        assert adapter.last.loss is not None
    assert len(trained) == 4
    assert not any(torch.equal(a, b) for a, b in zip(before, trained))


@pytest.mark.parametrize("method", ["rotta", "grotta"])
def test_teachers_follow_in_other_norms_too(method):
    adapter = grotta.create(method, small_model(norm="layer"), nu=0.5)
    before = [p.clone() for p in adapter._followers]
    adapter(next(batches((64,))))
    assert len(before) == 4
    assert not any(torch.equal(a, b) for a, b in zip(before, adapter._followers))


def test_hybrids_use_both():
    adapter = grotta.create("grotta", Hybrid())
    description = adapter.describe()
    assert description.layers == {"BatchNorm": 1, "LayerNorm": 1}
    assert description.trained == 4 * 8
    before = adapter.state_dict()
    adapter(next(batches((16,))))
    after = adapter.state_dict()
    moved = {key.removeprefix("network.") for key in before if not torch.equal(before[key], after[key])}
    for key in ("student.body.bn.weight", "student.body.ln.weight", "teacher.body.bn.running_mean"):
        assert key in moved


@pytest.mark.parametrize(
    ("make", "expected"),
    [(lambda: small_model(norm="group"), 4 * 7), (lambda: small_model(norm="layer"), 4 * 7), (Hybrid, 4 * 8)],
    ids=["group", "layer", "hybrid"],
)
def test_fair_training_trains_the_affine_parameters_of_other_norms(make, expected):
    """It waits for even answers for some time, which an untrained network does not give: these are made up."""
    torch.manual_seed(0)
    adapter = grotta.create("grotta+", make())
    assert adapter.describe().trained == expected
    before = [p.detach().clone() for p in adapter.trainer.origin.trained]
    (x,) = batches((64,))
    for place in range(6):
        adapter.trainer.remember(x, torch.eye(5)[torch.arange(64) % 5])
        with torch.no_grad():
            assert (adapter.trainer.step(x) is not None) == (place == 5)
    assert not any(torch.equal(a, b) for a, b in zip(before, adapter.trainer.origin.trained, strict=True))


def test_a_network_with_nothing_to_train_gets_output_adaptation_alone():
    model = small_model(norm="none")
    adapter = grotta.create("grotta", model)
    source = grotta.create("source", model, output="bias_guided")
    for x in batches():
        assert torch.equal(adapter(x), source(x))
        assert adapter.last.adapted is False
    assert adapter.memory is None
    assert str(adapter.describe()).startswith("grotta: no normalisation layers, nothing trained, output bias_guided; ")


@pytest.mark.parametrize(("method", "norm"), [("bn", "layer"), ("bn", "none"), ("tent", "none"), ("rotta", "none")])
def test_a_method_that_would_do_nothing_says_so_once(method, norm):
    with pytest.warns(UserWarning, match=f"method '{method}' finds nothing to adapt in Sequential") as caught:
        adapter = grotta.create(method, small_model(norm=norm))
    assert len(caught) == 1
    source = grotta.create("source", small_model(norm=norm))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.reset()
        for x in batches():
            assert torch.equal(adapter(x), source(x))


def test_batch_norms_without_scale_and_shift_are_not_said_to_be_missing():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False), nn.Flatten(), nn.Linear(400, 5))
    with pytest.warns(UserWarning, match="no scale or shift to train in its normalisation layers"):
        grotta.create("tent", model)


@pytest.mark.parametrize("method", ["source", "lame", "cotta", "grotta", "grotta+"])
def test_methods_that_do_something_on_any_network_do_not_warn(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grotta.create(method, small_model(norm="none"))


def test_what_is_adapted_is_said_in_one_line_of_the_log(caplog):
    with caplog.at_level(logging.INFO, logger="grotta"):
        adapter = grotta.create("grotta", small_model())
        adapter.reset()
        adapter(next(batches((4,))))
    assert [record.getMessage() for record in caplog.records] == [
        "grotta: 2 BatchNorm layers, statistics following the stream, 28 of 675 parameters trained, "
        "output bias_guided; 2.6 kB shared with the model, 672 bytes own, 40 bytes memory"
    ]


def test_a_description_counts_what_is_there():
    model = grotta.models.create_model("resnet20", num_classes=10)
    description = grotta.create("tent", model).describe()
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert description.layers == {"BatchNorm": len(norms)}
    assert description.trained == sum(2 * layer.num_features for layer in norms)
    assert description.parameters == sum(p.numel() for p in model.parameters())
    assert description.own_bytes == sum(4 * 4 * layer.num_features for layer in norms)
    assert description.shared_bytes == 4 * (description.parameters - description.trained)
    assert description.statistics == "of each batch"
    with networks_with("none"):
        assert not grotta.create("source", small_model()).describe().adapts
