"""Noticing new domains, and domains that return, by what images look like."""

from itertools import count

import pytest
import torch
import torch.nn.functional as F

import grotta
from grotta.checks import small_model
from grotta.functional.novelty import SIGNS, signs
from grotta.methods import create
from grotta.methods.domain_watch import FEW, DomainWatch
from grotta.nn.gated_bn import MOST_CLASSES
from grotta.outputs.base import MOST_DOMAINS

CLASSES = 4


def pictures(n, *, classes=range(CLASSES), contrast=1.0, brightness=0.0, noise=0.02, channels=3, size=8, seed=0):
    """Images whose brightness and texture depend on their class, and the classes."""
    generator = torch.Generator().manual_seed(seed)
    of = torch.tensor(list(classes))[torch.randint(len(classes), (n,), generator=generator)]
    wave = torch.sin(torch.arange(size) * (1.0 + of[:, None]) * 0.7)[:, None, None, :].expand(n, channels, size, size)
    level = 0.4 + 0.05 * of + 0.02 * torch.randn(n, generator=generator)
    strength = 0.15 * (1 + 0.2 * torch.randn(n, generator=generator))
    clean = level[:, None, None, None] + strength[:, None, None, None] * wave
    grain = noise * torch.randn(n, channels, size, size, generator=generator)
    return (0.5 + contrast * (clean - 0.5) + brightness + grain).clamp(0, 1), F.one_hot(of, CLASSES).float()


def show(watch, images, labels, size=64):
    """Look at images and learn from them, in batches; what is said of each batch."""
    told = []
    for x, y in zip(images.split(size), labels.split(size)):
        told.append(watch.look(x, y))
        watch.take(told[-1], y)
    return [sight.domain for sight in told]


def begun(domains):
    """Which of them begin: the number of the batch, the place and whether it returns."""
    return [(i, int(d.place), bool(d.returns)) for i, d in enumerate(domains) if d.begins]


def settled(n=320, size=64, **options):
    watch = DomainWatch(CLASSES)
    assert begun(show(watch, *pictures(n, **options), size=size)) == []
    return watch


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def copied(watch):
    return {name: tensor.clone() for name, tensor in watch.state_dict().items()}


CHANGES = [{"contrast": 0.4}, {"brightness": 0.25}, {"noise": 0.15}]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_other_contrast_brightness_or_noise_is_a_new_domain_and_only_once(change, channels):
    watch = settled(channels=channels)
    domains = show(watch, *pictures(320, channels=channels, seed=1, **change))
    assert begun(domains) == [(0, 1, False)]
    assert {int(d.place) for d in domains} == {1}


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 9), (3, 1)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_tiny_pictures_are_told_apart_by_their_brightness(size, channels):
    watch, generator = DomainWatch(CLASSES), torch.Generator().manual_seed(0)
    images = 0.3 + 0.1 * torch.rand(384, channels, *size, generator=generator)
    images[320:] += 0.5
    labels = torch.full((384, CLASSES), 1 / CLASSES)
    assert begun(show(watch, images, labels)) == [(5, 1, False)]


@pytest.mark.parametrize("one", range(CLASSES))
@pytest.mark.parametrize("size", [16, 64])
def test_images_of_one_known_class_are_no_new_domain(one, size):
    watch = settled()
    assert begun(show(watch, *pictures(128, classes=[one], seed=1), size=size)) == []


def test_what_differs_from_class_to_class_would_be_news_if_labels_did_not_explain_it():
    """The same images, with labels that say nothing: the test above is no easy one."""
    watch, (images, labels) = settled(), pictures(64, classes=[3], seed=1)
    assert watch.look(images, labels.roll(1, 1)).domain.begins
    assert not watch.look(images, labels).domain.begins


def test_a_class_that_has_never_been_seen_is_given_the_benefit_of_the_doubt():
    watch = settled(classes=range(CLASSES - 1))
    images, labels = pictures(64, classes=[CLASSES - 1], seed=1)
    assert not watch.look(images, labels).domain.begins
    assert watch.look(*pictures(64, classes=[CLASSES - 1], contrast=0.0, noise=0.0, seed=1)).domain.begins


@pytest.mark.parametrize(("images", "new"), [(112, False), (127, False), (128, True)])
def test_nothing_is_new_before_128_images_have_been_seen(images, new):
    watch = settled(images, size=images)
    assert bool(watch.look(*pictures(64, contrast=0.2, seed=1)).domain.begins) is new


@pytest.mark.parametrize("size", [1, 5, 64])
def test_fewer_than_sixteen_images_wait_and_then_tell_in_batches_of_any_size(size):
    watch = settled(size=size)
    for change, expected in (
        ({"contrast": 0.4, "seed": 1}, [(1, False)]),
        ({"seed": 2}, [(0, True)]),
        ({"seed": 3}, []),
        ({"contrast": 0.4, "seed": 4}, [(1, True)]),
    ):
        domains = show(watch, *pictures(320, **change), size=size)
        told = begun(domains)
        assert [(place, returns) for _, place, returns in told] == expected
        first = -(-FEW // size) - 1  # the batch with the sixteenth image
        assert [i for i, _, _ in told] == [first] * len(expected)
        assert {int(d.place) for d in domains[first:]} == {int(domains[-1].place)}


def test_images_wait_for_those_of_the_next_batch_and_are_counted():
    watch = settled()
    images, labels = pictures(24, contrast=0.4, seed=1)
    for first, last, waited in ((0, 7, 0), (7, 15, 7), (15, 24, 15)):
        sight = watch.look(images[first:last], labels[first:last])
        assert (sight.size, sight.waiting) == (last - first, waited)
        torch.testing.assert_close(sight.signs, signs(images[:last]))
        assert bool(sight.domain.begins) is (last == 24)
        before = copied(watch)
        watch.take(sight, labels[first:last])
        assert torch.equal(before["mean"], watch.mean) is (last < 24)
    together = settled()
    show(together, images, labels)
    for name, value in watch.state_dict().items():  # as if they had come at once
        if not name.startswith("waiting"):
            torch.testing.assert_close(value, together.state_dict()[name])
    assert watch.look(images, labels).waiting == 0


@pytest.mark.parametrize("size", [16, 64])
def test_a_domain_that_returns_is_recognised_and_gets_its_old_place(size):
    watch, seeds = DomainWatch(CLASSES), count()
    seen = []
    for domain in ({}, {"contrast": 0.4}, {"brightness": 0.25}, {}, {"contrast": 0.4}, {"brightness": 0.25}):
        domains = show(watch, *pictures(320, seed=next(seeds), **domain), size=size)
        assert len({int(d.place) for d in domains}) == 1
        seen.append((int(domains[-1].place), [(i, returns) for i, _, returns in begun(domains)]))
    new, back = [(0, False)], [(0, True)]
    assert seen == [(0, []), (1, new), (2, new), (0, back), (1, back), (2, back)]


def test_what_was_usual_in_a_domain_is_usual_again_when_it_returns():
    watch = settled()
    home, images = watch.mean.clone(), float(watch.images)
    show(watch, *pictures(320, contrast=0.4, seed=1))
    assert not torch.allclose(watch.mean, home, atol=0.5)
    torch.testing.assert_close(watch.means[0], home)
    show(watch, *pictures(64, seed=2))
    assert float(watch.images) == images + 64
    torch.testing.assert_close(watch.mean, home, atol=0.1, rtol=0)


def many_domains(n):
    """As many that differ from one another, each in 64 images."""
    for place in range(n):
        row, column = divmod(place, 5)
        yield pictures(64, contrast=0.05 * 3.0**row, brightness=0.15 * (column - 2), noise=0.002, seed=place)


def test_a_seventeenth_domain_takes_the_place_of_the_one_longest_unseen():
    watch = DomainWatch(CLASSES)
    domains = list(many_domains(MOST_DOMAINS + 2))
    show(watch, *domains[0])
    show(watch, *domains[0])
    for place, domain in enumerate(domains[1:MOST_DOMAINS], 1):
        assert begun(show(watch, *domain)) == [(0, place, False)]
    assert begun(show(watch, *domains[0])) == [(0, 0, True)]  # now the second is the one longest unseen
    assert begun(show(watch, *domains[MOST_DOMAINS])) == [(0, 1, False)]
    assert begun(show(watch, *domains[MOST_DOMAINS + 1])) == [(0, 2, False)]
    assert begun(show(watch, *domains[0])) == [(0, 0, True)]
    assert begun(show(watch, *domains[1])) == [(0, 3, False)]  # it was forgotten
    assert begun(show(watch, *domains[MOST_DOMAINS])) == [(0, 1, True)]


def test_the_present_domain_never_makes_room():
    """Even if it were the one longest unseen."""
    watch = DomainWatch(CLASSES)
    domains = list(many_domains(MOST_DOMAINS + 1))
    show(watch, *domains[0])
    for domain in domains[:MOST_DOMAINS]:
        show(watch, *domain)
    here = int(watch.place)
    watch.last_seen[here] = 0
    domain = watch.look(*domains[MOST_DOMAINS]).domain
    assert domain.begins
    assert not domain.returns
    assert int(domain.place) == int(watch.last_seen.masked_fill(torch.arange(MOST_DOMAINS) == here, 1e9).argmin())
    assert int(domain.place) != here


@pytest.mark.parametrize("size", [5, 64])
def test_looking_changes_nothing_and_taking_does(size):
    watch = settled()
    for change in ({}, {"contrast": 0.4}, {}):
        images, labels = pictures(size, seed=9, **change)
        before = copied(watch)
        kept = images.clone(), labels.clone()
        sights = [watch.look(images, labels) for _ in range(2)]
        assert same(before, watch.state_dict())
        assert all(torch.equal(one, other) for one, other in zip(sights[0].domain, sights[1].domain))
        taken = copied(watch), sights[0].signs.clone()
        watch.take(sights[0], labels)
        assert not same(before, watch.state_dict())
        assert torch.equal(images, kept[0])
        assert torch.equal(labels, kept[1])
        assert torch.equal(sights[0].signs, taken[1])


def test_what_was_looked_at_stays_what_it_was_when_others_are_learned():
    """A place that is told is a number of its own, no view of what changes."""
    watch = settled()
    sight = watch.look(*pictures(64, seed=1))
    place = int(sight.domain.place)
    show(watch, *pictures(64, contrast=0.4, seed=2))
    assert int(watch.place) != place
    assert int(watch.place) == 1


@pytest.mark.parametrize("size", [5, 64])
def test_saved_and_restored_it_goes_on_bit_for_bit(size):
    one, other = settled(), DomainWatch(CLASSES)
    show(one, *pictures(71, contrast=0.4, seed=1), size=size)
    assert int(one.waiting_images) == 71 % {5: 20, 64: 64}[size]  # some wait
    other.load_state_dict(copied(one))
    for change in ({"contrast": 0.4}, {}, {"noise": 0.15}):
        images, labels = pictures(80, seed=2, **change)
        assert begun(show(one, images, labels, size)) == begun(show(other, images, labels, size))
    assert same(one.state_dict(), other.state_dict())


def test_labels_that_are_not_known_are_even():
    one, other = settled(), settled()
    images, labels = pictures(64, seed=1)
    sights = one.look(images, None), other.look(images, torch.full_like(labels, 1 / CLASSES))
    assert all(torch.equal(left, right) for left, right in zip(sights[0].domain, sights[1].domain))


def test_beyond_a_hundred_classes_some_share_offsets():
    """Class 117 is treated as class 17."""
    folded, wide = DomainWatch(MOST_CLASSES), DomainWatch(MOST_CLASSES + 50)
    assert wide.offsets.shape == (MOST_CLASSES, SIGNS)
    generator = torch.Generator().manual_seed(0)
    of = torch.randint(MOST_CLASSES + 50, (320,), generator=generator)
    images = (of[:, None, None, None] % MOST_CLASSES / 200 + torch.rand(320, 3, 6, 6, generator=generator) / 2).float()
    for size in (10, 64):
        for i in range(0, 320, size):
            x, places = images[i : i + size], of[i : i + size]
            show(folded, x, F.one_hot(places % MOST_CLASSES, MOST_CLASSES).float())
            show(wide, x, F.one_hot(places, MOST_CLASSES + 50).float())
    for name, value in folded.state_dict().items():
        torch.testing.assert_close(value, wide.state_dict()[name])
    dark = images[:64] / 4
    assert wide.look(dark, F.one_hot(of[:64], MOST_CLASSES + 50).float()).domain.begins


def test_double_stays_double():
    watch = DomainWatch(CLASSES, dtype=torch.float64)
    images, labels = pictures(64)
    show(watch, images, labels)  # of another type
    assert {watch.state_dict()[name].dtype for name in ("mean", "means", "waiting", "last_seen")} == {torch.float64}
    assert all(value.isfinite().all() for value in watch.state_dict().values())


@pytest.fixture(scope="module")
def fashion():
    names = ("clean", "contrast", "brightness", "fog")
    data = grotta.data.load("fashion-c", domains=list(names))
    wanted = dict(zip(names, (range(960), range(1000, 1320), range(1400, 1720), range(1800, 2120))))
    wanted["contrast"] = range(1000, 1640)
    return {
        name: (
            data.images(name, rows) / 255,
            F.one_hot(torch.as_tensor(data.labels(name)[rows.start : rows.stop]), data.num_classes).float(),
        )
        for name, rows in wanted.items()
    }


@pytest.mark.parametrize("size", [1, 5, 64])
def test_fashion_under_corruptions_and_clean_again(fashion, size):
    watch, seen, used = DomainWatch(10), [], dict.fromkeys(fashion, 0)
    for name in ("clean", "contrast", "clean", "fog", "contrast", "clean"):
        start = used[name]
        used[name] += 320
        domains = show(watch, *(values[start : start + 320] for values in fashion[name]), size=size)
        assert len({int(d.place) for d in domains[-(-FEW // size) - 1 :]}) == 1
        seen.append([(place, returns) for _, place, returns in begun(domains)])
    assert seen == [[], [(1, False)], [(0, True)], [(2, False)], [(1, True)], [(0, True)]]


def test_fashion_in_one_class_after_the_other_is_one_domain(fashion):
    images, labels = fashion["clean"]
    watch = DomainWatch(10)
    show(watch, images[:320], labels[:320])
    order = labels[320:].argmax(1).argsort(stable=True)
    assert begun(show(watch, images[320:][order], labels[320:][order])) == []
    assert begun(show(watch, *(values[:64] for values in fashion["brightness"]))) == [(0, 1, False)]


@pytest.mark.parametrize("sizes", [(8, 8), (3, 3), (15, 15), (8, 20), (20, 8)])
@pytest.mark.parametrize("waiting", [0, 8])
def test_small_batches_may_be_answered_before_others_are_learned(sizes, waiting):
    adapter = create("grotta+", small_model())
    if waiting:
        adapter(torch.rand(waiting, 3, 16, 16))
    pendings = [adapter.answer(torch.rand(n, 3, 16, 16))[1] for n in sizes]
    for pending in pendings:
        adapter.learn_from(pending)


def test_a_small_batch_keeps_the_place_it_was_told():
    watch = settled()
    sight = watch.look(*pictures(8, seed=1))
    place = int(sight.domain.place)
    show(watch, *pictures(64, contrast=0.4, seed=2))
    assert int(sight.domain.place) == place


def test_a_batch_learned_late_does_not_write_another_domains_looks_into_its_place():
    watch = settled()
    images, labels = pictures(64, seed=1)
    home = watch.means[0].clone()
    sight = watch.look(images, labels)
    show(watch, *pictures(320, contrast=0.4, seed=2))
    watch.take(sight, labels)
    torch.testing.assert_close(watch.means[0], home, atol=0.15, rtol=0)


def test_learning_under_autocast_is_as_exact_as_without():
    one, other = settled(), settled()
    images, labels = pictures(64, seed=1)
    sight = one.look(images, labels)
    one.take(sight, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        other.take(sight, labels)
    for name in ("mean", "var", "offsets", "noise"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [5, 8, 64])
def test_a_new_domain_is_noticed_where_batches_are_learned_one_late(size):
    watch = settled()
    changed, labels = pictures(320, contrast=0.4, seed=1)
    again, more = pictures(320, seed=2)
    xs, ys = torch.cat([changed, again]).split(size), torch.cat([labels, more]).split(size)
    waiting, places = [], []
    for x, y in zip(xs, ys):
        waiting.append((watch.look(x, y), y))
        if len(waiting) > 1:
            watch.take(*waiting.pop(0))
        places.append(int(watch.place))
    watch.take(*waiting.pop())
    assert places[len(places) // 2 - 1] == 1
    assert int(watch.place) == 0
    torch.testing.assert_close(watch.means[0], settled().mean, atol=0.15, rtol=0)


def grey(n, seed=0, *, contrast=1.0):
    noise = torch.rand(n, 3, 16, 16, generator=torch.Generator().manual_seed(seed))
    return 0.5 + contrast * (noise - 0.5)


def run_in(n=512):
    """A GRoTTA+ that has seen some images of one domain."""
    adapter = create("grotta+", small_model())
    for batch in grey(n).split(64):
        adapter(batch)
    return adapter


@pytest.mark.parametrize(("size", "begins"), [(64, [1, 0, 0, 0]), (8, [0, 1])])
def test_a_domain_begins_once_however_late_its_batches_are_learned_and_the_output_is_told(size, begins):
    """Eight images are too few to tell; with eight others that were answered before them, they are enough."""
    late, direct = run_in(), run_in()
    new = grey(size * len(begins), 1, contrast=0.1).split(size)
    told = [late.learn_from(pending).extra["new_domain"] for pending in [late.answer(x)[1] for x in new]]
    assert [float(one) for one in told] == begins
    for x in new:
        direct(x)
    for name in ("bias_images", "held", "most", "domain"):
        assert torch.equal(late.output.state_dict()[name], direct.output.state_dict()[name]), name
    assert int(late.output.state_dict()["domain"]) == int(late.watch.place) == 1


def test_a_batch_that_is_learned_after_its_domain_has_ended_brings_it_back():
    watch = settled()
    images, labels = pictures(64, seed=1)
    sight = watch.look(images, labels)
    show(watch, *pictures(320, contrast=0.4, seed=2))
    taken = watch.take(sight, labels).domain
    assert (int(taken.place), bool(taken.begins), bool(taken.returns)) == (0, True, True)
    assert int(watch.place) == 0
