"""What holds for every corruption: arguments, seeds, sizes, chunks, constants."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.data.corruptions import CORRUPTIONS, SCALES, Scale, apply, corrupt, find_corruption
from grotta.data.corruptions.apply import generator_for
from grotta.data.corruptions.pixels import Images

RANDOM = tuple(name for name in CORRUPTIONS if find_corruption(name).draws)
FORMULAS = tuple(name for name in CORRUPTIONS if name not in RANDOM)


def pictures(count: int, height: int = 32, width: int = 32, seed: int = 0) -> Images:
    """Coloured ramps with a hard-edged box and a little grain: flat, smooth and sharp places in each picture."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width] / max(height, width)
    ramps = rng.uniform(0, 120, (count, 1, 1, 3)) + 120 * np.multiply.outer(
        rng.uniform(0.2, 1, count), (rows * columns)[..., None].repeat(3, axis=-1)
    )
    ramps[:, height // 4 : height // 2, width // 4 : width // 2] = rng.integers(0, 256, (count, 1, 1, 3))
    ramps[:, : height // 4, : width // 4] += rng.normal(0, 20, (count, height // 4, width // 4, 3))
    return np.asarray(np.clip(ramps, 0, 255), dtype=np.uint8)


def test_names_are_the_fifteen_in_the_order_of_the_paper() -> None:
    assert " ".join(CORRUPTIONS) == (
        "motion_blur snow fog shot_noise defocus_blur contrast zoom_blur brightness frost elastic_transform "
        "glass_blur gaussian_noise pixelate jpeg_compression impulse_noise"
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_severity_keeps_shape_and_dtype_and_leaves_the_input_alone(name: str, scale: Scale) -> None:
    clean = pictures(2)
    before = clean.copy()
    for severity in range(1, 6):
        result = corrupt(clean, name, severity, scale=scale)
        assert result.shape == clean.shape
        assert result.dtype == np.uint8
        assert not np.array_equal(result, clean)
    np.testing.assert_array_equal(clean, before)


@pytest.mark.parametrize("name", RANDOM)
def test_same_seed_gives_the_same_bytes_and_another_seed_gives_others(name: str) -> None:
    clean = pictures(3)
    first = corrupt(clean, name, seed=7)
    np.testing.assert_array_equal(corrupt(clean, name, seed=7), first)
    assert not np.array_equal(corrupt(clean, name, seed=8), first)


@pytest.mark.parametrize("name", RANDOM)
def test_equal_pictures_of_one_array_are_corrupted_differently(name: str) -> None:
    clean = np.repeat(pictures(1), 4, axis=0)
    result = corrupt(clean, name)
    assert len(np.unique(result.reshape(4, -1), axis=0)) > 1


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_does_not_depend_on_the_seed(name: str) -> None:
    clean = pictures(2)
    np.testing.assert_array_equal(corrupt(clean, name, seed=1), corrupt(clean, name, seed=2))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_chunks_and_slices_do_not_change_a_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = pictures(11)
    whole = corrupt(clean, name)
    np.testing.assert_array_equal(corrupt(clean[:5], name), whole[:5])
    np.testing.assert_array_equal(corrupt(clean[4:], name, first_index=4), whole[4:])
    np.testing.assert_array_equal(corrupt(clean[::-1][::-1], name), whole)
    for per_chunk in (1, 3):
        monkeypatch.setattr(apply, "CHUNK_VALUES", per_chunk * 32 * 32 * 3)
        np.testing.assert_array_equal(corrupt(clean, name), whole)


def test_each_key_and_number_has_a_stream_of_its_own() -> None:
    keys = [(0, 0, 0, 1), (0, 0, 0, 2), (0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 1)]
    draws = {generator_for(key, number).random() for key in keys for number in range(20)}
    assert len(draws) == 100


def test_progress_reports_every_picture_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "CHUNK_VALUES", 3 * 32 * 32 * 3)
    steps: list[int] = []
    corrupt(pictures(8), "contrast", progress=steps.append)
    assert steps == [3, 3, 2]


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("size", [(8, 8), (9, 40), (50, 33)])
def test_other_sizes_and_shapes_work_at_both_scales(name: str, size: tuple[int, int]) -> None:
    clean = pictures(1, *size)
    for scale in SCALES:
        assert corrupt(clean, name, 5, scale=scale).shape == clean.shape


@pytest.mark.parametrize("size", [(400, 300), (320, 700)])
def test_frost_covers_a_picture_larger_than_the_frost_pictures(size: tuple[int, int]) -> None:
    black = np.zeros((5, *size, 3), dtype=np.uint8)
    assert corrupt(black, "frost", 5, scale="imagenet").mean(axis=(1, 2, 3)).min() > 50


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_no_pictures_give_no_pictures(name: str) -> None:
    assert corrupt(np.empty((0, 32, 32, 3), dtype=np.uint8), name).shape == (0, 32, 32, 3)


@pytest.mark.parametrize("name", ["contrast", "defocus_blur", "motion_blur", "pixelate", "elastic_transform"])
@settings(max_examples=15, deadline=None)
@given(colour=st.tuples(*[st.integers(0, 255)] * 3), severity=st.integers(1, 5))
def test_a_picture_of_one_colour_is_left_as_it_is(name: str, colour: tuple[int, int, int], severity: int) -> None:
    flat = np.broadcast_to(np.array(colour, dtype=np.uint8), (1, 32, 32, 3))
    np.testing.assert_array_equal(corrupt(flat, name, severity), flat)


def bad_calls() -> Iterator[tuple[type[Exception], str, tuple[object, ...], dict[str, object]]]:
    good = pictures(1)
    yield ValueError, r"name must be one of motion_blur, snow, .*impulse_noise, .*; got 'rain'", (good, "rain"), {}
    yield ValueError, r"severity must be in \[1, 6\), got 0", (good, "fog", 0), {}
    yield ValueError, r"severity must be in \[1, 6\), got 6", (good, "fog", 6), {}
    yield TypeError, r"severity must be a whole number, got 2.5", (good, "fog", 2.5), {}
    yield TypeError, r"severity must be a whole number, got 5.0", (good, "fog", 5.0), {}
    yield TypeError, r"severity must be a whole number, got True", (good, "fog", True), {}
    yield ValueError, r"scale must be one of 'cifar', 'imagenet', got 'mnist'", (good, "fog"), {"scale": "mnist"}
    yield TypeError, r"images must be uint8 in 0..255, got dtype float64", (good / 255.0, "fog"), {}
    yield TypeError, r"images must be a numpy array, got list", (good.tolist(), "fog"), {}
    yield ValueError, r"images must have shape \(N, H, W, 3\), got \(32, 32, 3\)", (good[0], "fog"), {}
    yield (
        ValueError,
        r"images must have shape \(N, H, W, 3\), got \(1, 3, 32, 32\)",
        (good.transpose(0, 3, 1, 2), "fog"),
        {},
    )
    yield ValueError, r"images must be at least 8 pixels per side, got \(7, 32\)", (good[:, :7], "fog"), {}
    yield ValueError, r"seed must be at least 0, got -1", (good, "fog"), {"seed": -1}
    yield TypeError, r"seed must be a whole number, got 1.5", (good, "fog"), {"seed": 1.5}
    yield ValueError, r"first_index must be at least 0, got -2", (good, "fog"), {"first_index": -2}


@pytest.mark.parametrize(("error", "message", "arguments", "options"), list(bad_calls()))
def test_a_bad_argument_is_named(
    error: type[Exception], message: str, arguments: tuple[object, ...], options: dict[str, object]
) -> None:
    with pytest.raises(error, match=message):
        corrupt(*arguments, **options)  # type: ignore[arg-type]


# Typed off the publication's table: one line a corruption and scale, severity 1 to 5 from left to right.
PUBLISHED = """
gaussian_noise cifar .04 .06 .08 .09 .10
gaussian_noise imagenet .08 .12 .18 .26 .38
shot_noise cifar 500 250 100 75 50
shot_noise imagenet 60 25 12 5 3
impulse_noise cifar .01 .02 .03 .05 .07
impulse_noise imagenet .03 .06 .09 .17 .27
defocus_blur cifar .3,.4 .4,.5 .5,.6 1,.2 1.5,.1
defocus_blur imagenet 3,.1 4,.5 6,.5 8,.5 10,.5
glass_blur cifar .05,1,1 .25,1,1 .4,1,1 .25,1,2 .4,1,2
glass_blur imagenet .7,1,2 .9,2,1 1,2,3 1.1,3,2 1.5,4,2
motion_blur cifar 6,1 6,1.5 6,2 8,2 9,2.5
motion_blur imagenet 10,3 15,5 15,8 15,12 20,15
zoom_blur cifar 1.06,.01 1.11,.01 1.16,.01 1.21,.01 1.26,.01
zoom_blur imagenet 1.11,.01 1.16,.01 1.21,.02 1.26,.02 1.31,.03
snow cifar .1,.2,1,.6,8,3,.95 .1,.2,1,.5,10,4,.9 .15,.3,1.75,.55,10,4,.9 .25,.3,2.25,.6,12,6,.85 .3,.3,1.25,.65,14,12,.8
snow imagenet .1,.3,3,.5,10,4,.8 .2,.3,2,.5,12,4,.7 .55,.3,4,.9,12,8,.7 .55,.3,4.5,.85,12,8,.65 .55,.3,2.5,.85,12,12,.55
frost cifar 1,.2,5 1,.3,5 .9,.4,5 .85,.4,5 .75,.45,5
frost imagenet 1,.4,1 .8,.6,1 .7,.7,1 .65,.7,1 .6,.75,1
fog cifar .2,3 .5,3 .75,2.5 1,2 1.5,1.75
fog imagenet 1.5,2 2,2 2.5,1.7 2.5,1.5 3,1.4
brightness cifar .05 .1 .15 .2 .3
brightness imagenet .1 .2 .3 .4 .5
contrast cifar .75 .5 .4 .3 .15
contrast imagenet .4 .3 .2 .1 .05
elastic_transform cifar 0,0,.08 .05,.2,.07 .08,.06,.06 .1,.04,.05 .1,.03,.03
elastic_transform imagenet 2,.7,.1 2,.08,.2 .05,.01,.02 .07,.01,.02 .12,.01,.02
pixelate cifar .95 .9 .85 .75 .65
pixelate imagenet .6 .5 .4 .3 .25
jpeg_compression cifar 80 65 58 50 40
jpeg_compression imagenet 25 18 15 10 7
"""
# The published lengths of elastic_transform are shares of these sides.
ELASTIC_SIDE = {"cifar": 32, "imagenet": 244}


def test_constants_are_the_published_ones() -> None:
    seen = set()
    for line in PUBLISHED.strip().splitlines():
        name, scale, *published = line.split()
        unit = ELASTIC_SIDE[scale] if name == "elastic_transform" else 1
        expected = [[unit * float(number) for number in numbers.split(",")] for numbers in published]
        constants = find_corruption(name).constants[scale]  # type: ignore[index]
        assert [list(np.atleast_1d(numbers)) for numbers in constants] == expected, (name, scale)
        seen.add((name, scale))
    assert seen == {(name, scale) for name in CORRUPTIONS for scale in SCALES}
