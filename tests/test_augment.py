"""The strong view against its operation-by-operation composition, and that composition against real peers."""

from __future__ import annotations

import colorsys
import importlib.util
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from grotta import augment
from grotta.augment import StrongParams, apply, draw, mild_view, strong_view


def load_reference() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "reference_augment.py"
    spec = importlib.util.spec_from_file_location("reference_augment", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load_reference()

IDENTITY = StrongParams(
    order=("hue", "gamma", "contrast", "saturation", "brightness"),
    brightness=1.0,
    contrast=1.0,
    saturation=1.0,
    hue=0.0,
    gamma=1.0,
    angle=0.0,
    translate=(0, 0),
    scale=1.0,
    sigma=0.001,
    flip=False,
    noise=0.0,
    noise_seed=0,
)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noiseless(seed: int, height: int, width: int) -> StrongParams:
    return replace(draw(seeded(seed), height, width), noise=0.0)


def pixels(seed: int, *shape: int) -> Tensor:
    """Random images with many exact zeros, ones and greys, where formulas like to break."""
    generator = seeded(seed)
    x = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.4 - 0.2
    grey = torch.rand((shape[0], 1, *shape[2:]), generator=generator) < 0.1
    return torch.where(grey, x[:, :1], x).clamp(0, 1)


@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    height=st.integers(4, 48),
    width=st.integers(4, 48),
    channels=st.sampled_from([1, 3]),
)
@example(seed=0, height=64, width=4, channels=3)  # reaches far outside of the padded image
@example(seed=0, height=4, width=64, channels=3)
def test_equals_the_composition_exactly_for_every_draw_and_size(seed, height, width, channels):
    x, params = pixels(seed, 2, channels, height, width), noiseless(seed, height, width)
    expected = reference.strong_view(x, params, torch.zeros((), dtype=x.dtype))
    torch.testing.assert_close(apply(x, params), expected, rtol=0, atol=1e-11)


def test_images_of_other_channels_are_viewed_as_that_many_grey_ones():
    x, params = pixels(0, 2, 13, 32, 32), noiseless(0, 32, 32)
    expected = torch.cat([apply(plane, params) for plane in x.split(1, dim=1)], dim=1)
    torch.testing.assert_close(apply(x, params), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (33, 47)])
def test_float32_equals_the_float64_composition_to_rounding(height, width):
    for seed in range(40):
        x, params = pixels(seed, 2, 3, height, width), noiseless(seed, height, width)
        expected = reference.strong_view(x, params, torch.zeros((), dtype=x.dtype))
        torch.testing.assert_close(apply(x.float(), params).double(), expected, rtol=0, atol=1e-5)


def test_float32_equals_the_float64_composition_to_rounding_at_224():
    # Sampling positions of float32 are good to 1e-5 of a pixel there, so the image must not be white noise.
    smooth = F.interpolate(pixels(0, 2, 3, 28, 28), size=224, mode="bilinear", align_corners=False)
    for seed in range(6):
        params = noiseless(seed, 224, 224)
        expected = reference.strong_view(smooth, params, torch.zeros((), dtype=smooth.dtype))
        torch.testing.assert_close(apply(smooth.float(), params).double(), expected, rtol=0, atol=1e-5)


@settings(max_examples=200, deadline=None)
@given(
    size=st.integers(22, 300),
    angle=st.sampled_from([-15.0, 0.0, 15.0]) | st.floats(-15, 15),
    scale=st.sampled_from([0.9, 1.1]) | st.floats(0.9, 1.1),
    right=st.floats(-1, 1),
    down=st.floats(-1, 1),
)
def test_square_images_of_22_pixels_never_reach_the_fill(size, angle, scale, right, down):
    limit = (size + 2 * (size // 2)) / 16
    shift = (round(right * limit), round(down * limit))
    params = replace(IDENTITY, angle=angle, scale=scale, translate=shift)
    assert not augment._reaches_outside(size, size, params, margin=2)


def test_narrow_images_reach_the_fill_as_the_padded_composition_does():
    outside = [augment._reaches_outside(40, 8, noiseless(seed, 40, 8), margin=2) for seed in range(50)]
    assert any(outside)
    assert not all(outside)


@settings(max_examples=100, deadline=None)
@given(
    rgb=st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)] * 3), min_size=1),
    turns=st.floats(-1 / 6, 1 / 6),
)
def test_hue_shift_equals_the_standard_librarys_hsv(rgb, turns):
    x = torch.tensor(rgb, dtype=torch.float64).T.reshape(1, 3, 1, -1).contiguous()
    shifted = augment._shift_hue(x, turns)
    expected = []
    for red, green, blue in rgb:
        hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
        expected.append(colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value))
    torch.testing.assert_close(shifted[0, :, 0].T, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_the_reference_hue_shift_equals_kornias():
    from kornia.enhance import adjust_hue

    x = pixels(1, 2, 3, 16, 16)
    for turns in (-0.06, -0.01, 0.03, 0.06):
        expected = adjust_hue(x, 2 * math.pi * turns)
        torch.testing.assert_close(reference.adjust_hue(x, turns), expected, rtol=0, atol=1e-6)


def test_the_reference_blur_equals_kornias():
    from kornia.filters import gaussian_blur2d

    x = pixels(2, 2, 3, 16, 20)
    for sigma in (0.05, 0.3, 0.5):
        expected = gaussian_blur2d(x, (5, 5), (sigma, sigma), border_type="reflect")
        torch.testing.assert_close(reference.gaussian_blur(x, sigma), expected, rtol=0, atol=1e-6)


def test_the_reference_affine_map_equals_kornias():
    from kornia.geometry.transform import get_affine_matrix2d, warp_affine

    x = pixels(3, 2, 3, 20, 26)
    for degrees, (right, down), scale in ((15.0, (2, -1), 0.9), (-7.0, (0, 3), 1.1), (0.0, (-3, 0), 1.0)):
        centre = torch.tensor([[12.5, 9.5]], dtype=x.dtype)
        matrix = get_affine_matrix2d(
            torch.tensor([[right, down]], dtype=x.dtype),
            centre,
            torch.full((1, 2), scale, dtype=x.dtype),
            torch.tensor([degrees], dtype=x.dtype),
        )
        expected = warp_affine(x, matrix[:, :2].expand(2, -1, -1), (20, 26), align_corners=True)
        ours = reference.affine(x, degrees, (right, down), scale)
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)


def test_a_positive_angle_turns_clockwise_and_a_shift_goes_right_and_down():
    x = torch.zeros(1, 1, 33, 33)
    x[..., 16, 26] = 1  # 10 pixels right of the centre
    turned = apply(x, replace(IDENTITY, angle=15.0))
    assert divmod(int(turned.argmax()), 33) == (16 + round(10 * math.sin(math.radians(15))), 26)
    shifted = apply(x, replace(IDENTITY, translate=(2, 3)))
    assert divmod(int(shifted.argmax()), 33) == (19, 28)


def test_neutral_parameters_only_clip():
    x = torch.rand(2, 3, 24, 24, generator=seeded(0)) * 3 - 1
    torch.testing.assert_close(apply(x, IDENTITY), x.clamp(0, 1), rtol=0, atol=1e-6)


def test_flip_mirrors_the_view():
    x, params = pixels(4, 2, 3, 32, 32), replace(noiseless(4, 32, 32), flip=False)
    torch.testing.assert_close(apply(x, replace(params, flip=True)), apply(x, params).flip(-1))


def test_noise_is_gaussian_and_differs_from_pixel_to_pixel():
    x = torch.full((16, 3, 64, 64), 0.5)
    noise = apply(x, replace(IDENTITY, noise=0.005, noise_seed=7)) - 0.5
    assert abs(noise.mean()) < 5 * 0.005 / len(noise.flatten()) ** 0.5
    assert abs(noise.std() / 0.005 - 1) < 0.01
    assert abs((noise.abs() < 0.005).double().mean() - 0.6827) < 0.005
    assert len(noise.unique()) > noise.numel() / 20
    assert not torch.equal(noise[0], noise[-1])


def test_a_batch_worked_through_in_parts_equals_one_image_at_a_time(monkeypatch):
    x, params = pixels(5, 7, 3, 32, 32).float(), noiseless(5, 32, 32)
    one_by_one = torch.cat([apply(image[None], params) for image in x])
    monkeypatch.setattr(augment, "_CACHE_ELEMENTS", 3 * x[0].numel())
    torch.testing.assert_close(apply(x, params), one_by_one, rtol=0, atol=1e-6)


def test_the_same_seed_gives_the_same_bits_and_the_global_generator_is_not_used():
    x = pixels(6, 3, 3, 32, 32).float()
    before = torch.get_rng_state()
    first, second, other = (strong_view(x, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_the_input_is_not_changed():
    x = torch.rand(3, 3, 32, 32) * 3 - 1
    kept = x.clone()
    strong_view(x, seeded(0))
    assert torch.equal(x, kept)


def test_channels_last_gives_the_same_bits_and_stays_channels_last():
    x, params = pixels(7, 5, 3, 32, 40).float(), draw(seeded(7), 32, 40)
    view = apply(x.contiguous(memory_format=torch.channels_last), params)
    assert view.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(view, apply(x, params))


def test_eight_bit_images_equal_their_float_form_and_half_becomes_float32():
    x, params = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8, generator=seeded(8)), noiseless(8, 32, 32)
    assert torch.equal(apply(x, params), apply(x / 255, params))
    half = (x / 255).half()
    assert torch.equal(apply(half, params), apply(half.float(), params))


def test_views_can_be_trained_on_wherever_they_were_made():
    with torch.inference_mode():
        view = strong_view(torch.rand(2, 3, 16, 16), seeded(0))
    weight = torch.ones((), requires_grad=True)
    (view * weight).sum().backward()
    assert weight.grad is not None
    assert not strong_view(torch.rand(2, 3, 16, 16, requires_grad=True), seeded(0)).requires_grad


def test_draws_fill_the_stated_ranges():
    generator = seeded(0)
    draws = [draw(generator, 32, 64) for _ in range(3000)]
    ranges = {
        "brightness": (0.6, 1.4),
        "contrast": (0.7, 1.3),
        "saturation": (0.5, 1.5),
        "hue": (-0.06, 0.06),
        "gamma": (0.7, 1.3),
        "angle": (-15, 15),
        "scale": (0.9, 1.1),
        "sigma": (0.001, 0.5),
    }
    for name, (low, high) in ranges.items():
        values = [getattr(params, name) for params in draws]
        assert low <= min(values) < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < max(values) <= high
        assert abs(sum(values) / len(values) - (low + high) / 2) < 5 * (high - low) / (12 * len(values)) ** 0.5
    assert {params.translate[0] for params in draws} == set(range(-8, 9))  # 1/16 of the padded width of 128
    assert {params.translate[1] for params in draws} == set(range(-4, 5))
    assert abs(sum(params.flip for params in draws) / len(draws) - 0.5) < 0.05
    orders = Counter(params.order for params in draws)
    assert len(orders) == 120
    assert max(orders.values()) < 60
    assert len({params.noise_seed for params in draws}) == len(draws)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (torch.rand(3, 32, 32), ValueError, "non-empty"),
        (torch.rand(0, 3, 32, 32), ValueError, "non-empty"),
        (torch.rand(1, 3, 3, 32), ValueError, "at least 4 pixels"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.int64), TypeError, "uint8 or floating"),
    ],
)
def test_bad_batches_are_refused_before_anything_is_drawn(x, error, words):
    generator = seeded(0)
    before = generator.get_state()
    with pytest.raises(error, match=words):
        strong_view(x, generator)
    assert torch.equal(before, generator.get_state())


def test_the_mild_view_is_the_strong_one_without_blur_and_noise_of_the_image_reflected_at_its_borders():
    for seed in range(10):
        x = pixels(seed, 2, 3, 24, 20)
        params = replace(draw(seeded(seed), 24, 20), noise=0.0, sigma=0.001, padding="reflect")
        expected = reference.strong_view(x, params, torch.zeros((), dtype=x.dtype))
        torch.testing.assert_close(mild_view(x, seeded(seed)), expected, rtol=0, atol=1e-11)
        assert not torch.allclose(mild_view(x, seeded(seed)), apply(x, replace(params, padding="replicate")))
