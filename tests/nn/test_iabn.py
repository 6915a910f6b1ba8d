"""IABN against loops over instances and channels."""

import math

import pytest
import torch
from torch import nn

from grotta.nn import IABN1d, IABN2d


def shrink(value: float, threshold: float) -> float:
    return math.copysign(max(abs(value) - threshold, 0.0), value)


def loop(x: torch.Tensor, layer: IABN2d, mean_b: torch.Tensor, var_b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            values = x[b, c].flatten().tolist()
            n = len(values)
            mb, vb = mean_b[c].item(), var_b[c].item()
            mi = sum(values) / n
            vi = sum((v - mi) ** 2 for v in values) / (n - 1)
            m = mb + shrink(mi - mb, layer.k * math.sqrt((vb + layer.eps) / n))
            v = max(vb + shrink(vi - vb, layer.k * (vb + layer.eps) * math.sqrt(2 / (n - 1))), 0.0)
            out[b, c] = (x[b, c] - m) / math.sqrt(v + layer.eps) * layer.weight[c].item() + layer.bias[c].item()
    return out


@pytest.mark.parametrize("k", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("tracking", [False, True])
def test_equals_the_loop_over_instances(k: float, tracking: bool) -> None:
    bn = nn.BatchNorm2d(4, dtype=torch.float64)
    nn.init.uniform_(bn.weight, 0.5, 1.5)
    nn.init.normal_(bn.bias)
    bn.running_mean.normal_()
    bn.running_var.uniform_(0.5, 2)
    layer = IABN2d.from_bn(bn, k=k, alpha=0.2)
    layer.tracking = tracking
    x = torch.randn(5, 4, 6, 6, dtype=torch.float64) * torch.rand(5, 4, 1, 1, dtype=torch.float64) * 4 + 1
    mean, var = bn.running_mean, bn.running_var
    if tracking:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), loop(x, layer, mean, var), rtol=0, atol=1e-10)


def test_tracking_moves_the_running_statistics_as_torch_does() -> None:
    bn = nn.BatchNorm2d(3, momentum=0.1, dtype=torch.float64).train()
    layer = IABN2d.from_bn(bn, alpha=0.1)
    layer.tracking = True
    x = torch.randn(4, 3, 5, 5, dtype=torch.float64) * 2 + 1
    bn(x)
    layer(x)
    torch.testing.assert_close(layer.running_mean, bn.running_mean)
    torch.testing.assert_close(layer.running_var, bn.running_var)


def test_features_with_one_position_use_the_reference_alone() -> None:
    bn = nn.BatchNorm1d(3).eval()
    bn.running_mean.normal_()
    x = torch.randn(4, 3)
    torch.testing.assert_close(IABN1d.from_bn(bn)(x), bn(x))


def test_a_batch_equals_its_instances_one_by_one() -> None:
    layer = IABN2d.from_bn(nn.BatchNorm2d(3))
    x = torch.randn(6, 3, 4, 4) * 3
    torch.testing.assert_close(layer(x), torch.cat([layer(row[None]) for row in x]))


def test_bad_k_is_named() -> None:
    with pytest.raises(ValueError, match="k must be at least 0"):
        IABN2d(3, k=-1.0)
