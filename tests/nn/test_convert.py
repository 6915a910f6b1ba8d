import copy

import pytest
import torch
from torch import nn

from grotta.nn import (
    BatchStatsBN2d,
    GpreRBN1d,
    GpreRBN2d,
    IABN2d,
    RBN2d,
    batch_stats,
    convert_norm,
    gpre_rbn,
    iabn,
    norm_layers,
    rbn,
    set_tracking,
    shared_copy,
    storages,
)


class BatchNormAct(nn.BatchNorm2d):
    """A batch normalisation with dropout and activation inside, as timm has it."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.drop = nn.Identity()
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.drop(super().forward(x)))


class Scaled(nn.BatchNorm2d):
    """A batch normalisation that does something of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


def small() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.Sequential(nn.ReLU(), nn.ModuleList([nn.BatchNorm2d(4)])[0]),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.BatchNorm1d(4),
        nn.Linear(4, 2),
    ).eval()


@pytest.mark.parametrize(
    ("factory", "kind"),
    [(gpre_rbn(), GpreRBN2d), (rbn(), RBN2d), (batch_stats(), BatchStatsBN2d), (iabn(), IABN2d)],
)
def test_every_norm_layer_is_replaced_and_the_model_is_untouched(factory, kind) -> None:
    model = small().train()
    before = copy.deepcopy(model.state_dict())
    converted = convert_norm(model, factory)
    assert [type(m).__name__ for m in norm_layers(converted)].count(kind.__name__) == 2
    assert len(norm_layers(converted)) == 3
    assert not norm_layers(model)
    assert model.training
    assert model[1].training
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.requires_grad for p in model.parameters())


def test_the_converted_network_computes_what_the_model_computes() -> None:
    model = small()
    model[1].running_mean.normal_()
    model[5].running_var.uniform_(0.5, 2)
    x = torch.rand(8, 3, 8, 8)
    torch.testing.assert_close(convert_norm(model, gpre_rbn())(x), model(x))


def test_weights_are_shared_and_norm_states_are_not() -> None:
    model = small()
    converted = convert_norm(model, gpre_rbn())
    assert converted[0].weight.data_ptr() == model[0].weight.data_ptr()
    assert storages(converted[1]).isdisjoint(storages(model))


def test_a_layer_used_twice_is_converted_once() -> None:
    shared = nn.BatchNorm2d(3)
    converted = convert_norm(nn.Sequential(shared, nn.ReLU(), shared, nn.Sequential(shared)), gpre_rbn())
    assert converted[0] is converted[2]
    assert converted[0] is converted[3][0]


def test_a_norm_layer_alone_is_converted() -> None:
    assert isinstance(convert_norm(nn.BatchNorm1d(3), gpre_rbn()), GpreRBN1d)


def test_sync_batch_norm_is_converted_like_a_plain_one() -> None:
    sync = nn.SyncBatchNorm(3).eval()
    sync.running_mean.normal_()
    converted = convert_norm(nn.Sequential(sync), gpre_rbn())[0]
    assert isinstance(converted, GpreRBN2d)
    assert torch.equal(converted.running_mean, sync.running_mean)


def test_a_subclass_that_carries_an_activation_keeps_it() -> None:
    layer = BatchNormAct(3).eval()
    layer.running_mean.normal_()
    converted = convert_norm(nn.Sequential(layer), gpre_rbn())
    x = torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(converted(x), layer(x))
    assert converted(x).min() == 0
    assert len(norm_layers(converted)) == 1


def test_a_subclass_that_does_more_is_refused_by_name() -> None:
    model = nn.Sequential(nn.Sequential(Scaled(3)))
    with pytest.raises(ValueError, match=r"layer '0\.0' \(Scaled\).*does more"):
        convert_norm(model, gpre_rbn())


def test_a_layer_without_affine_is_converted_faithfully() -> None:
    layer = nn.BatchNorm2d(3, affine=False).eval()
    layer.running_mean.normal_()
    x = torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(convert_norm(layer, gpre_rbn())(x), layer(x))


def test_lazy_and_volumetric_layers_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"the model is lazy.*'0\.weight'"):
        convert_norm(nn.Sequential(nn.LazyBatchNorm2d()), gpre_rbn())
    with pytest.raises(TypeError, match=r"layer '0'.*BatchNorm3d"):
        convert_norm(nn.Sequential(nn.BatchNorm3d(3)), gpre_rbn())


def test_something_else_than_a_module_is_refused() -> None:
    with pytest.raises(TypeError, match="model must be a"):
        convert_norm(lambda x: x, gpre_rbn())  # type: ignore[arg-type]


def test_other_norms_are_left_alone() -> None:
    model = nn.Sequential(nn.GroupNorm(1, 3), nn.InstanceNorm2d(3), nn.LayerNorm(4))
    assert [type(m) for m in convert_norm(model, gpre_rbn())] == [nn.GroupNorm, nn.InstanceNorm2d, nn.LayerNorm]


def test_set_tracking_reaches_every_layer() -> None:
    converted = convert_norm(small(), gpre_rbn())
    set_tracking(converted, True)
    assert all(layer.tracking for layer in norm_layers(converted))


def test_the_callers_hooks_stay_with_the_caller() -> None:
    model = small()
    calls: list[int] = []
    model[0].register_forward_hook(lambda *_: calls.append(1))
    with pytest.warns(UserWarning, match="hooks on 0 are not run"):
        copied = shared_copy(model)
    copied(torch.rand(2, 3, 8, 8))
    assert calls == []
    model(torch.rand(2, 3, 8, 8))
    assert calls == [1]


def test_hooks_that_compute_weights_come_along() -> None:
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 3))).eval()
    x = torch.rand(2, 3)
    torch.testing.assert_close(shared_copy(model)(x), model(x))


def test_tied_weights_stay_tied() -> None:
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.weight = a.weight
    copied = shared_copy(nn.Sequential(a, b))
    assert copied[0].weight is copied[1].weight


def test_script_modules_are_refused() -> None:
    with pytest.warns(DeprecationWarning, match="script"):
        scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(TypeError, match="ScriptModule"):
        shared_copy(scripted)


def test_wrappers_are_looked_through() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    assert shared_copy(nn.DataParallel(model))[0].weight.data_ptr() == model[0].weight.data_ptr()
