import pytest
import torch
from torch import nn

from grotta.nn import BatchStatsBN1d, BatchStatsBN2d


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 7), (6, 5, 4, 3), (1, 5, 4, 3)])
def test_equals_normalisation_by_the_biased_batch_statistics(shape: tuple[int, ...]) -> None:
    bn = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(5, dtype=torch.float64)
    nn.init.uniform_(bn.weight)
    nn.init.normal_(bn.bias)
    layer = (BatchStatsBN2d if len(shape) == 4 else BatchStatsBN1d).from_bn(bn)
    x = torch.randn(shape, dtype=torch.float64)
    dims = [d for d in range(x.ndim) if d != 1]
    view = [1, -1, *[1] * (x.ndim - 2)]
    expected = (x - x.mean(dims, keepdim=True)) / (x.var(dims, keepdim=True, unbiased=False) + bn.eps).sqrt()
    expected = expected * bn.weight.view(view) + bn.bias.view(view)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-10)
    assert torch.equal(layer.running_mean, torch.zeros(5, dtype=torch.float64))


def test_a_single_value_a_channel_gives_the_bias() -> None:
    layer = BatchStatsBN1d.from_bn(nn.BatchNorm1d(3))
    nn.init.constant_(layer.bias, 2.0)
    assert torch.equal(layer(torch.randn(1, 3)), torch.full((1, 3), 2.0))


def test_a_layer_that_never_tracked_statistics_is_converted_faithfully() -> None:
    bn = nn.BatchNorm2d(3, track_running_stats=False)
    x = torch.randn(4, 3, 2, 2)
    torch.testing.assert_close(BatchStatsBN2d.from_bn(bn)(x), bn.eval()(x))
