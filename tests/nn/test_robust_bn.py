"""GpreRBN and RBN against the paper's formulas, written out in float64 with plain autograd."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from grotta.nn import GpreRBN1d, GpreRBN2d, RBN2d

SHAPES = {"1d": (6, 5), "1d-length": (6, 5, 7), "2d": (6, 5, 4, 3)}
ALPHA, EPS = 0.3, 1e-5


def reference(x: Tensor, weight: Tensor, bias: Tensor, mean_g: Tensor, var_g: Tensor, gradient: str, tracking: bool):
    """The layer's output and new statistics, as the formulas say them; gradients by plain autograd."""
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [1, -1, *[1] * (x.ndim - 2)]
    mean_b, var_b = x.mean(dims), x.var(dims, unbiased=False)
    old_mean, old_var = mean_g, var_g
    if tracking:
        mean_g = (1 - ALPHA) * old_mean + ALPHA * mean_b
        var_g = (1 - ALPHA) * old_var + ALPHA * var_b
    c = lambda v: v.view(shape)  # noqa: E731
    if gradient == "none":
        out = c(weight) * (x - c(mean_g)) / c((var_g + EPS).sqrt()) + c(bias)
        return out, mean_g.detach(), var_g.detach()
    mean_g, var_g = mean_g.detach(), var_g.detach()
    s_b, s_g = (var_b + EPS).sqrt(), (var_g + EPS).sqrt()
    if gradient == "exact":
        preserved = c(s_b.detach()) * (x - c(mean_b)) / c(s_b) + c(mean_b.detach())
    else:
        preserved = (x - c(mean_b) + c(mean_b.detach())) / c(s_b) * c(s_b.detach())
    return c(weight) * (preserved - c(mean_g)) / c(s_g) + c(bias), mean_g, var_g


def make(shape: tuple[int, ...], gradient: str = "exact", dtype: torch.dtype = torch.float64, affine: bool = True):
    g = torch.Generator().manual_seed(0)
    bn = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[1], affine=affine, dtype=dtype)
    bn.running_mean.copy_(torch.randn(shape[1], generator=g))
    bn.running_var.copy_(torch.rand(shape[1], generator=g) + 0.5)
    if affine:
        with torch.no_grad():
            bn.weight.copy_(torch.rand(shape[1], generator=g) + 0.5)
            bn.bias.copy_(torch.randn(shape[1], generator=g))
    layer = (GpreRBN2d if len(shape) == 4 else GpreRBN1d).from_bn(bn, alpha=ALPHA, gradient=gradient)
    x = torch.randn(shape, generator=g, dtype=dtype) * 2 + 1
    return bn, layer, x


@pytest.mark.parametrize("gradient", ["exact", "literal", "none"])
@pytest.mark.parametrize(("shape", "tracking"), list(itertools.product(SHAPES, [True, False])))
def test_value_statistics_and_gradients_equal_the_formula(shape: str, tracking: bool, gradient: str) -> None:
    bn, layer, x = make(SHAPES[shape], gradient)
    layer.tracking = tracking
    upstream = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))

    x1, w1, b1 = x.clone().requires_grad_(), bn.weight.detach().requires_grad_(), bn.bias.detach().requires_grad_()
    expected, mean, var = reference(x1, w1, b1, bn.running_mean, bn.running_var, gradient, tracking)
    expected.backward(upstream)

    x2 = x.clone().requires_grad_()
    out = layer(x2)
    out.backward(upstream)

    torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(layer.running_mean, mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.running_var, var, rtol=0, atol=1e-12)
    for ours, theirs in ((x2.grad, x1.grad), (layer.weight.grad, w1.grad), (layer.bias.grad, b1.grad)):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tracking", [True, False])
def test_value_equals_batch_normalisation_with_the_updated_statistics(shape: str, tracking: bool) -> None:
    bn, layer, x = make(SHAPES[shape])
    layer.tracking = tracking
    with torch.no_grad():
        out = layer(x)
    bn.running_mean.copy_(layer.running_mean)
    bn.running_var.copy_(layer.running_var)
    torch.testing.assert_close(out, bn.eval()(x), rtol=0, atol=1e-12)


def test_no_grad_gives_the_value_and_statistics_of_the_recorded_pass() -> None:
    _, recorded, x = make(SHAPES["2d"])
    _, silent, _ = make(SHAPES["2d"])
    recorded.tracking = silent.tracking = True
    expected = recorded(x)
    with torch.no_grad():
        out = silent(x)
    assert not out.requires_grad
    assert torch.equal(out, expected)
    assert torch.equal(silent.running_var, recorded.running_var)


def test_the_gradient_of_a_pass_does_not_see_later_moves_of_the_statistics() -> None:
    _, layer, x = make(SHAPES["2d"])
    layer.tracking = True
    first = x.clone().requires_grad_()
    out = layer(first)
    expected = torch.autograd.grad(out.square().sum(), first, retain_graph=True)[0]
    layer(x * 3 + 1)
    torch.testing.assert_close(torch.autograd.grad(out.square().sum(), first)[0], expected)


def test_train_and_eval_do_not_matter() -> None:
    _, layer, x = make(SHAPES["2d"])
    layer.tracking = False
    before = layer.running_mean.clone()
    assert torch.equal(layer.train()(x), layer.eval()(x))
    assert torch.equal(layer.running_mean, before)


def test_channels_last_gives_the_same_values_and_gradients() -> None:
    results = []
    for memory_format in (torch.contiguous_format, torch.channels_last):
        _, layer, x = make((8, 16, 5, 5))
        layer.tracking = True
        x = x.to(memory_format=memory_format).requires_grad_()
        out = layer(x)
        out.pow(3).sum().backward()
        results.append((out, x.grad, layer.weight.grad, layer.bias.grad, layer.running_var))
    for plain, last in zip(*results):
        torch.testing.assert_close(plain, last, rtol=0, atol=1e-10)


def test_autocast_keeps_the_dtype_and_float32_statistics() -> None:
    _, layer, x = make((16, 5, 4, 4), dtype=torch.float32)
    _, expected_layer, _ = make((16, 5, 4, 4), dtype=torch.float32)
    layer.tracking = expected_layer.tracking = True
    half = x.bfloat16().requires_grad_()
    wide = half.detach().float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(half)
    expected = expected_layer(wide)
    out.float().square().mean().backward()
    expected.square().mean().backward()
    assert out.dtype == torch.bfloat16
    assert layer.running_mean.dtype == torch.float32
    torch.testing.assert_close(layer.running_mean, expected_layer.running_mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(out.float(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(layer.weight.grad, expected_layer.weight.grad, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("gradient", ["exact", "literal", "none"])
def test_a_layer_without_affine_has_the_gradient_of_weight_one(gradient: str) -> None:
    bn, layer, x = make(SHAPES["2d"], gradient, affine=False)
    layer.tracking = True
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    ones, zeros = torch.ones(5, dtype=x.dtype), torch.zeros(5, dtype=x.dtype)
    expected, _, _ = reference(x1, ones, zeros, bn.running_mean, bn.running_var, gradient, True)
    layer(x2).pow(3).sum().backward()
    expected.pow(3).sum().backward()
    torch.testing.assert_close(x2.grad, x1.grad, rtol=0, atol=1e-10)


def test_frozen_affine_still_lets_the_gradient_through() -> None:
    _, layer, x = make(SHAPES["2d"])
    layer.requires_grad_(False)
    x.requires_grad_()
    layer(x).pow(3).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


def test_one_value_a_channel_is_finite() -> None:
    _, layer, _ = make((1, 5))
    layer.tracking = True
    x = torch.randn(1, 5, dtype=torch.float64, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.isfinite().all()
    assert layer.running_var.isfinite().all()


def test_rbn_is_the_layer_without_gradient_preserving() -> None:
    assert RBN2d.from_bn(nn.BatchNorm2d(3)).gradient == "none"


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="alpha must be in"):
        GpreRBN2d(3, alpha=1.5)
    with pytest.raises(ValueError, match="gradient must be one of"):
        GpreRBN2d(3, gradient="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rank 4"):
        GpreRBN2d(3)(torch.rand(2, 3))
    with pytest.raises(ValueError, match="3 channels"):
        GpreRBN2d(3)(torch.rand(2, 4, 5, 5))
    with pytest.raises(TypeError, match="batch normalisation layer"):
        GpreRBN2d.from_bn(nn.Linear(2, 2))  # type: ignore[arg-type]
