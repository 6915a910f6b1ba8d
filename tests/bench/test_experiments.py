"""The toy methods of the paper's figures."""

import copy

import pytest
import torch
from torch import nn

import grotta.methods
from grotta.bench import experiments
from grotta.bench.experiments import ENTROPY, EntropyMinimisation
from grotta.methods import registry

CLASSES = 5


@pytest.fixture
def net():
    torch.manual_seed(0)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), pool, nn.Linear(8, CLASSES)).eval()
    net[1].running_mean.uniform_(-0.2, 0.2)
    net[1].running_var.uniform_(0.5, 1.5)
    return net


@pytest.fixture
def images():
    return torch.rand(3, 12, 3, 9, 9, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def prepared(monkeypatch):
    """The experiment registered for one test only."""
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    experiments.prepare(ENTROPY)


def test_experiments_are_no_public_methods_until_asked_for():
    assert ENTROPY not in grotta.methods.list_methods()


def test_preparing_another_name_does_nothing():
    before = grotta.methods.list_methods()
    experiments.prepare("grotta")
    experiments.prepare("no such method")
    assert grotta.methods.list_methods() == before


def test_preparing_twice_is_preparing_once(prepared, net):
    experiments.prepare(ENTROPY)
    assert isinstance(grotta.methods.create(ENTROPY, net), EntropyMinimisation)


def test_learning_from_the_batch_is_entropy_minimisation_with_source_statistics(net, images):
    reference = copy.deepcopy(net)
    trained = [reference[1].weight, reference[1].bias]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    adapter = EntropyMinimisation(net, channels_last=False)
    for batch in images:
        logits = reference(batch)
        torch.testing.assert_close(adapter(batch), logits.softmax(1))
        entropy = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        entropy.backward(inputs=trained)
        optimizer.step()
        assert adapter.last.loss == pytest.approx(entropy.item(), rel=1e-5)
    assert adapter.memory is None
    torch.testing.assert_close(adapter.student.body[1].running_mean, net[1].running_mean)


def test_the_bank_holds_one_image_a_class(net, images):
    adapter = EntropyMinimisation(net, learns_from="bank")
    for batch in images:
        adapter(batch)
    assert adapter.bank.counts().max() == 1
    assert adapter.last.bank_size == adapter.bank.counts().sum() <= CLASSES


@pytest.mark.parametrize("gradient", ["exact", "none"])
def test_tracked_statistics_follow_the_bank_and_only_then(net, images, gradient):
    adapter = EntropyMinimisation(net, learns_from="bank", statistics="tracked", gradient=gradient, capacity=50)
    before = adapter.student.body[1].running_mean.clone()
    adapter.predict(images[0])
    assert torch.equal(adapter.student.body[1].running_mean, before)
    adapter(images[0])
    assert not torch.equal(adapter.student.body[1].running_mean, before)
    assert torch.equal(net[1].running_mean, before)


def test_a_saved_experiment_goes_on_bit_identically(prepared, net, images, tmp_path):
    adapter = grotta.methods.create(ENTROPY, net, learns_from="bank", statistics="tracked")
    adapter(images[0])
    adapter.save(tmp_path / "adapter.safetensors")
    again = grotta.methods.load(tmp_path / "adapter.safetensors", net)
    for batch in images[1:]:
        assert torch.equal(adapter(batch), again(batch))


@pytest.mark.parametrize(("option", "value"), [("learns_from", "disk"), ("statistics", "batch"), ("capacity", 0)])
def test_bad_options_name_themselves(net, option, value):
    with pytest.raises(ValueError, match=option):
        EntropyMinimisation(net, **{option: value})
