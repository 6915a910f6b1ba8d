"""What images look like, and whether that is news, against slow arithmetic in float64."""

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.functional import novelty as N
from grotta.functional.novelty import SIGNS, Usual, nothing_usual, novelty, signs, usual_after

NO, YES = torch.tensor(False), torch.tensor(True)
CHANNELS = {1: (0, 0, 0), 2: (0, 1, 1), 3: (0, 1, 2), 4: (0, 2, 3), 6: (0, 3, 5)}  # the first, the middle, the last


def signs_by_hand(image):
    """Of one image (C, H, W), pixel by pixel; what is too small to have an edge has none."""
    means, logs = [], [[], [], [], []]
    for c in CHANNELS[len(image)]:
        rows = image[c].tolist()
        pixels = [value for row in rows for value in row]
        mean = sum(pixels) / len(pixels)
        across = [[right - left for left, right in pairwise(row)] for row in rows]
        down = [low - high for upper, lower in pairwise(rows) for high, low in zip(upper, lower)]
        detail = [right - left for row in across for left, right in pairwise(row)]
        means.append(mean)
        parts = ([value - mean for value in pixels], [value for row in across for value in row], down, detail)
        for log, part in zip(logs, parts):
            log.append(math.log(sum(value**2 for value in part) / max(len(part), 1) + 1e-4))
    return torch.tensor(means + [value for log in logs for value in log], dtype=torch.float64)


def random(*shape, seed=0, dtype=torch.float64):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 5), (4, 1), (5, 7)])
def test_signs_are_those_of_a_slow_loop(channels, size):
    images = random(3, channels, *size)
    images[0] = 0.5  # one flat
    found = signs(images)
    assert found.shape == (3, SIGNS)
    torch.testing.assert_close(found, torch.stack([signs_by_hand(image) for image in images]))


def test_signs_are_of_each_image_alone_and_leave_the_images_as_they_are():
    images = random(5, 3, 8, 8)
    kept = images.clone()
    together = signs(images)
    assert torch.equal(images, kept)
    torch.testing.assert_close(together, torch.cat([signs(image[None]) for image in images]))
    torch.testing.assert_close(together, signs(images.to(memory_format=torch.channels_last)))
    torch.testing.assert_close(together.float(), signs(images.float()), atol=1e-4, rtol=1e-4)


def test_of_one_grey_channel_the_signs_are_those_of_three_alike():
    grey = random(4, 1, 6, 6)
    torch.testing.assert_close(signs(grey), signs(grey.expand(-1, 3, -1, -1)))


def some_usual(*, mean=0.0, images=48.0, var=4.0, seen=200.0, noise=2.0, offsets=(1.0, 0.0), counts=(3.0, 0.0)):
    """The same of all signs; the first class has been seen, the second not."""
    number = torch.tensor
    offsets = number(offsets, dtype=torch.float64)[:, None].expand(-1, SIGNS).clone()
    mean, var = (torch.full((SIGNS,), value, dtype=torch.float64) for value in (mean, var))
    images, seen, noise, counts = (number(value, dtype=torch.float64) for value in (images, seen, noise, counts))
    return Usual(mean, images, var, seen, noise, offsets, counts)


def alike(n, sign, *classes):
    """Images that all have this sign and these probable classes."""
    labels = torch.tensor(classes, dtype=torch.float64).expand(n, -1)
    return torch.full((n, SIGNS), float(sign), dtype=torch.float64), labels


def test_novelty_by_hand():
    news = novelty(some_usual(mean=0.5), *alike(16, 4.25, 1, 0))
    # The first class lies 1 off, of which 3 images in 4 are believed: 4.25 - 0.75 - 0.5 is 3, squared over 4 is 2.25.
    torch.testing.assert_close(news.apart, torch.full((SIGNS,), 3.0, dtype=torch.float64))
    assert float(news.surprise) == pytest.approx(2.25)
    assert float(news.foreseen) == pytest.approx(1 / 4)
    assert float(news.images) == pytest.approx(12)  # 1 / (1 / 16 + 1 / 48)


def test_the_surprise_is_the_mean_over_all_signs():
    seen, labels = alike(16, 0.0, 0, 1)
    seen[:, 0] = 2.0
    seen[:8, 1], seen[8:, 1] = 3.0, -3.0  # cancels out
    assert float(novelty(some_usual(), seen, labels).surprise) == pytest.approx(1 / SIGNS)


def test_a_class_that_has_not_been_seen_may_lie_as_far_off_as_two_images():
    for mix, foreseen in (((0.0, 1.0), 1.0), ((0.5, 0.5), 0.25 / 4 + 0.25), ((1.0, 0.0), 0.25)):
        assert float(novelty(some_usual(), *alike(16, 0, *mix)).foreseen) == pytest.approx(foreseen)


def test_several_domains_are_compared_at_once():
    usual = some_usual()
    means, images = torch.stack([usual.mean, usual.mean + 2, usual.mean - 1]), torch.tensor([48.0, 16.0, 0.0]).double()
    several = novelty(usual._replace(mean=means, images=images), *alike(16, 2.75, 1, 0))
    assert several.surprise.tolist() == pytest.approx([1.0, 0.0, 2.25])
    assert several.images.tolist() == pytest.approx([12.0, 8.0, 16 / 17])  # never seen counts as one image
    assert several.is_another_domain(usual).tolist() == [False, False, False]  # of 25 * (2 / 12 + 0.25) and more


@pytest.mark.parametrize("noise", [1.0, 2.0])
@pytest.mark.parametrize("counts", [(3.0, 0.0), (1e9, 0.0)])
def test_what_is_25_times_as_far_off_as_expected_is_another_domain(noise, counts):
    usual = some_usual(offsets=(0.0, 0.0), noise=noise, counts=counts)
    distance = 2 * (25 * (noise / 12 + 1 / (1 + counts[0]))) ** 0.5
    for factor, another in ((0.999, False), (1.001, True)):
        news = novelty(usual, *alike(16, factor * distance, 1, 0))
        assert bool(news.is_another_domain(usual)) is another
        early = usual._replace(seen=torch.tensor(127.0))
        assert not news.is_another_domain(early)
        assert bool(news.is_another_domain(early._replace(seen=torch.tensor(128.0)))) is another


def test_the_first_images_are_what_is_usual():
    seen = random(20, SIGNS)
    labels = F.one_hot(torch.arange(20) % 2, 3).double()
    after = usual_after(nothing_usual(3, torch.zeros((), dtype=torch.float64)), seen, labels, NO)
    torch.testing.assert_close(after.mean, seen.mean(0))
    torch.testing.assert_close(after.var, seen.var(0, unbiased=False) + 1e-4)
    assert (float(after.images), float(after.seen), float(after.noise)) == (20, 20, 2)
    assert after.offset_images.tolist() == [10, 10, 0]
    torch.testing.assert_close(after.offsets[0], seen[::2].mean(0) - seen.mean(0))
    torch.testing.assert_close(after.offsets[1], seen[1::2].mean(0) - seen.mean(0))
    assert not after.offsets[2].any()


@pytest.mark.parametrize(
    ("sign", "begins", "noise"),
    [
        (0.0, NO, 1.8),  # a tenth of the way to 0
        (1000.0, NO, 2.4),  # a tenth of the way to three times as much, and no further
        (1000.0, YES, 2.0),  # a new domain is not noise
        (2 * (4 / 32 + 0.2) ** 0.5, NO, 2.2),  # 4, beside what was foreseen: a tenth of the way there
    ],
)
def test_the_noise_level_follows_by_a_tenth_per_64_images(sign, begins, noise):
    usual = some_usual(images=64.0, offsets=(0.0, 0.0), counts=(4.0, 0.0))
    assert float(usual_after(usual, *alike(64, sign, 1, 0), begins).noise) == pytest.approx(noise)


def test_images_are_never_expected_to_be_less_noisy_than_independent_ones():
    after = usual_after(some_usual(noise=1.05, offsets=(0.0, 0.0)), *alike(64, 0.0, 1, 0), NO)
    assert float(after.noise) == 1


def test_a_class_that_is_not_shown_keeps_its_offset_and_loses_weight():
    usual = some_usual(offsets=(1.0, 3.0), counts=(10.0, 50.0))
    after = usual_after(usual, *alike(64, 1.0, 1, 0), NO)
    assert after.offset_images.tolist() == pytest.approx([10 * 0.98 + 64, 50 * 0.98])
    torch.testing.assert_close(after.offsets[1], usual.offsets[1])
    quarters = usual
    for _ in range(4):
        quarters = usual_after(quarters, *alike(16, 1.0, 1, 0), NO)
    assert float(quarters.offset_images[1]) == pytest.approx(49)  # in batches of any size


def test_offsets_are_means_of_what_is_beside_the_usual():
    usual = some_usual(images=48.0, offsets=(1.0, 0.0), counts=(10.0, 0.0))
    after = usual_after(usual, *alike(16, 3.0, 1, 0), NO)
    apart = 3 - 10 / 11  # of which a quarter moves the mean
    mean = apart * 16 / 64
    torch.testing.assert_close(after.mean, torch.full_like(after.mean, mean))
    old = 10 * 0.98**0.25
    torch.testing.assert_close(after.offsets[0], torch.full_like(after.mean, (old * 1 + 16 * (3 - mean)) / (old + 16)))


def test_what_is_usual_fades():
    after = usual_after(some_usual(images=1000.0, seen=1020.0), *alike(64, 0.0, 1, 0), NO)
    assert (float(after.images), float(after.seen)) == (1024, 1024)


def after_by_hand(usual, seen, labels, begins):
    """All of :func:`usual_after` once more, one number after the other."""
    mean, images, var, all_images, noise, offsets, counts = (value.tolist() for value in usual)
    size, classes, first = len(seen), range(len(counts)), usual.seen == 0
    rows, mixes = seen.tolist(), labels.tolist()
    known = [[value * counts[k] / (counts[k] + 1) for value in offsets[k]] for k in classes]
    expected = [[sum(mix[k] * known[k][s] for k in classes) for s in range(SIGNS)] for mix in mixes]
    apart = [sum(rows[i][s] - (0 if first else expected[i][s]) for i in range(size)) / size for s in range(SIGNS)]
    apart = [apart[s] - (0 if first else mean[s]) for s in range(SIGNS)]
    new_mean = [mean[s] + apart[s] * size / (images + size) for s in range(SIGNS)]
    new_var = []
    for s in range(SIGNS):
        centre = [apart[s]] * size if first else [mean[s] + expected[i][s] + apart[s] for i in range(size)]
        within = sum((rows[i][s] - centre[i]) ** 2 for i in range(size)) / size + 1e-4
        new_var.append((var[s] * all_images + within * size) / (all_images + size))
    if not first and not begins:
        surprise = sum(apart[s] ** 2 / var[s] for s in range(SIGNS)) / SIGNS
        mix = [sum(m[k] for m in mixes) / size for k in classes]
        foreseen = sum(mix[k] ** 2 / (1 + counts[k]) for k in classes)
        level = max(surprise - foreseen, 0) / (1 / size + 1 / max(images, 1))
        keep = 0.9 ** (size / 64)
        noise = keep * noise + (1 - keep) * min(level, 3 * noise)
    new_counts, new_offsets = [], []
    for k in classes:
        before = counts[k] * 0.98 ** (size / 64)
        new_counts.append(before + sum(m[k] for m in mixes))
        sums = [sum(mixes[i][k] * (rows[i][s] - new_mean[s]) for i in range(size)) for s in range(SIGNS)]
        new_offsets.append([(before * offsets[k][s] + sums[s]) / max(new_counts[k], 1e-300) for s in range(SIGNS)])
    ends = (min(images + size, 1024), new_var, min(all_images + size, 1024), max(noise, 1), new_offsets, new_counts)
    return Usual(*(torch.tensor(value, dtype=torch.float64) for value in (new_mean, *ends)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=5), st.integers(0, 10**6))
def test_what_is_usual_after_any_batches_by_hand(batches, seed):
    usual = nothing_usual(3, torch.zeros((), dtype=torch.float64))
    for place, (size, begins) in enumerate(batches):
        seen = 3 * random(size, SIGNS, seed=seed + place) + place
        labels = random(size, 3, seed=seed + 100 + place).pow(4)
        labels = labels / labels.sum(1, keepdim=True)
        if begins:  # of a domain that has not been seen before
            usual = usual._replace(images=torch.zeros_like(usual.images))
        expected = after_by_hand(usual, seen, labels, begins)
        usual = usual_after(usual, seen, labels, torch.tensor(begins))
        for name, value, right in zip(Usual._fields, usual, expected):
            torch.testing.assert_close(value, right, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_images_that_are_all_alike_are_no_trouble(dtype):
    usual = nothing_usual(2, torch.zeros((), dtype=dtype))
    seen, labels = signs(torch.zeros(64, 3, 4, 4, dtype=dtype)), torch.ones(64, 2, dtype=dtype) / 2
    for _ in range(5):
        assert not novelty(usual, seen, labels).is_another_domain(usual)
        usual = usual_after(usual, seen, labels, NO)
    assert all(value.isfinite().all() and value.dtype == dtype for value in usual)
    assert bool((usual.var >= 0.99 * N.LEAST_VAR).all())
    assert novelty(usual, signs(torch.ones(16, 3, 4, 4, dtype=dtype)), labels[:16]).is_another_domain(usual)
