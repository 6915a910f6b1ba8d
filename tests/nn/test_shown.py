import pytest
import torch
import torch.nn.functional as F

from grotta.nn.normalise import normalise
from grotta.nn.shown import shown_by

SHAPES = [(5, 3), (1, 3), (5, 3, 7), (4, 3, 5, 7), (1, 16, 8, 8), (2, 16, 8, 6), (3, 600, 3, 3), (2, 4, 1, 1)]


def some(shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return (3 + 2 * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def formats(x):
    yield x
    if x.ndim == 4:
        yield x.contiguous(memory_format=torch.channels_last)
        yield x.repeat_interleave(2, 3)[..., ::2]  # neither
        yield x.transpose(2, 3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_a_batch_shows_in_any_memory_format(shape, dtype):
    wide = torch.promote_types(dtype, torch.float32)
    tolerance = {} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-4}
    for x in formats(some(shape, dtype)):
        exact = x.double().flatten(2) if x.ndim > 2 else x.double()[:, :, None]
        images = exact.mean(2)
        shown = shown_by(x, wide)
        expected = (exact.mean((0, 2)), exact.var((0, 2), correction=0), images.var(0, correction=0), images)
        assert all(tensor.dtype == wide for tensor in shown[:4])
        torch.testing.assert_close(tuple(tensor.double() for tensor in shown[:4]), expected, **tolerance)


def test_a_large_mean_costs_no_variance():
    """As it would if squares were added up before the mean is known."""
    x = 1000 + 0.1 * some((32, 16, 8, 8), torch.float64)
    for single in formats(x.float()):
        torch.testing.assert_close(
            shown_by(single, torch.float32).var, shown_by(x, x.dtype).var.float(), rtol=5e-3, atol=0
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_normalise_is_batch_norm_in_evaluation_mode(shape, affine, dtype):
    wide = torch.promote_types(dtype, torch.float32)
    mean, var, weight, bias = (some((shape[1],), wide).abs() + i for i in range(4))
    scale = (weight, bias) if affine else (None, None)
    for x in formats(some(shape, dtype)):
        y, expected = normalise(x, mean, var, *scale, 1e-5), F.batch_norm(x, mean, var, *scale, False, 0.0, 1e-5)
        assert (y.dtype, y.shape) == (dtype, x.shape)
        torch.testing.assert_close(y, expected)
