import pytest
import torch
from torch import nn

import grotta
from grotta.checks import batches, small_model
from grotta.methods import create
from grotta.methods.grotta_plus import READINGS, SOURCE, Seen
from grotta.methods.track_record import LAGS, SLOWLY, TrackRecord
from grotta.nn import observing


def passes(adapter):
    """Counts forward passes of each reading from now on."""
    counts = dict.fromkeys(adapter.readings, 0)
    for name in counts:

        def count(*_, name=name):
            counts[name] += 1

        getattr(adapter, name).register_forward_hook(count)
    return counts


def fashion(n=1000):
    images, labels = grotta.data.load_clean("fashion", "test")
    return torch.as_tensor(images[:n]), torch.as_tensor(labels[:n]).long()


def error(adapter, images, labels, size=64):
    wrong = [(adapter(x).argmax(1) != y).float() for x, y in zip(images.split(size), labels.split(size))]
    return 100 * torch.cat(wrong).mean().item()


def read(adapter, name, x):
    """What a reading says, in logarithms; the bold one is made surer."""
    logits = getattr(adapter, name)(x)[0]
    return (logits * adapter.bold_sharpness if name == "bold" else logits).log_softmax(1)


@pytest.mark.parametrize(
    ("options", "sharpness"), [({}, 1.5), ({"bold_sharpness": 3.0}, 3.0), ({"bold_sharpness": 1}, 1)]
)
def test_the_bold_reading_is_made_surer_and_no_other(options, sharpness):
    adapter = create("grotta+", small_model(torch.float64), output=None, **options)
    (x,) = batches((16,))
    x = x.double()
    with torch.no_grad(), observing():
        seen = adapter.infer(x).extra.said
        for place, name in enumerate(READINGS):
            powered = getattr(adapter, name)(x)[0].softmax(1) ** (sharpness if name == "bold" else 1)
            torch.testing.assert_close(seen[place].exp(), powered / powered.sum(1, keepdim=True))


def test_the_answer_is_the_weighted_mean_of_the_readings():
    """The first batch, by hand: weights from what each reading tells of this batch, how sure and how constant it is."""
    adapter = create("grotta+", small_model(torch.float64), output=None)
    (x,) = batches((16,))
    x = x.double()
    with torch.no_grad(), observing():
        logs = [read(adapter, name, x) for name in READINGS]
    weights = adapter.record.counts().after(torch.stack(logs, 1), adapter.keeps, 16).weights()
    assert weights.sum().item() == pytest.approx(1)
    pooled = sum(float(w) * log for w, log in zip(weights, logs))
    torch.testing.assert_close(adapter(x), pooled.softmax(1))
    assert adapter.last.extra["source_weight"] == pytest.approx(float(weights[SOURCE]))


def said(*answers, sure=0.9, classes=5):
    """Log-probabilities (B, E, C) of experts that are ``sure`` of their answers (B, E)."""
    hot = torch.nn.functional.one_hot(torch.tensor(answers), classes).double()
    return (hot * sure + (1 - hot) * (1 - sure) / (classes - 1)).log().float()


def test_the_record_counts_as_said():
    record = TrackRecord(3, 5)
    logs = said([0, 0, 1], [2, 2, 2])
    counts = record.counts().after(logs, 0.5, 64)
    twice = counts.after(logs, 0.5, 64)
    torch.testing.assert_close(twice.answers, 1.5 * counts.answers)
    torch.testing.assert_close(twice.chosen, (1 + SLOWLY) * counts.chosen)
    assert float(twice.images) == 3
    assert twice.past.tolist() == [[-1] * 3] * (LAGS - 4) + 2 * [[0, 0, 1], [2, 2, 2]]
    assert counts.after(logs, 0.5, 64, following=False).past[: LAGS - 2].eq(-1).all()
    first = record.counts().weights()
    torch.testing.assert_close(first, torch.full_like(first, 1 / 3))


def test_where_a_new_domain_begins_the_record_keeps_what_waited():
    record = TrackRecord(2, 5)
    counts = record.counts().after(said([0, 1], [0, 2], [3, 3], [0, 1]), 0.5, 4)
    same = counts.renewed(torch.tensor(False), 1)
    assert all(torch.equal(a, b) for a, b in zip(counts, same))
    new = counts.renewed(torch.tensor(True), 1)  # one of the four images
    for name in ("answers", "entropy", "confidence", "images"):
        torch.testing.assert_close(getattr(new, name), getattr(counts, name) / 4)
    assert torch.equal(new.lagged, counts.lagged)
    assert torch.equal(new.chosen, counts.chosen)
    assert counts.renewed(torch.tensor(True), 0).images == 0
    assert counts.renewed(torch.tensor(True), 9).images == counts.images


def dark(images):
    """The same pictures with less contrast."""
    corrupted = grotta.data.corrupt(images.permute(0, 2, 3, 1).numpy(), "contrast")
    return torch.as_tensor(corrupted).permute(0, 3, 1, 2)


def told(adapter, images, size=64):
    """In which batches the adapter says that a new domain begins."""
    news = []
    for x in images.split(size):
        adapter(x)
        news.append(float(adapter.last.extra["new_domain"]))
    assert set(news) <= {0.0, 1.0}
    return [i for i, new in enumerate(news) if new]


@pytest.mark.parametrize("preset", ["paper", "fast", "lite"])
def test_a_new_domain_is_told_and_at_once_the_readings_are_judged_anew(preset):
    images, _ = fashion(576)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"), preset=preset)
    assert told(adapter, images[:512]) == []
    counts = passes(adapter)
    assert told(adapter, dark(images[512:])) == [0]
    assert all(counts.values())
    assert adapter.record.images == 64
    assert adapter.record.counts().weights()[SOURCE] < 0.1


@pytest.mark.parametrize(("preset", "size"), [("paper", 20), ("paper", 64), ("fast", 5), ("lite", 1)])
def test_a_new_domain_is_told_whatever_the_batches_and_old_ones_are_recognised(preset, size):
    images, _ = fashion(960)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"), preset=preset)
    places = []
    for part in (images[:320], dark(images[320:480]), images[480:640], dark(images[640:800]), images[800:]):
        first = told(adapter, part, size)
        assert first == ([{1: 15, 5: 3}.get(size, 0)] if places else [])  # with sixteen images at hand
        places.append(int(adapter.watch.place))
    assert places == [0, 1, 0, 1, 0]
    assert int(adapter.output.state_dict()["domain"]) == 0


@pytest.mark.filterwarnings("ignore:method 'grotta")
@pytest.mark.parametrize(
    "options", [{}, {"train": False}, {"preset": "fast"}, {"preset": "lite"}, {"output": None}, {"output": "laplacian"}]
)
@pytest.mark.parametrize("network", ["group", "none", "no statistics", "batch"])
def test_a_new_domain_is_told_of_any_network(network, options):
    torch.manual_seed(0)
    makes = {
        "group": without_batch_norm,
        "none": lambda: small_model(norm="none"),
        "no statistics": without_statistics,
        "batch": small_model,
    }
    adapter = create("grotta+", makes[network](), **options)
    bright = torch.rand(256, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert told(adapter, bright) == []
    assert told(adapter, bright / 4) == [0]
    assert told(adapter, bright) == [0]


def test_a_batch_of_one_known_class_is_no_new_domain():
    images, labels = fashion(1400)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"))
    assert told(adapter, images[:640]) == []
    assert told(adapter, images[640:][labels[640:].argsort(stable=True)]) == []


def test_what_is_only_answered_is_not_remembered():
    images, _ = fashion(640)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"))
    told(adapter, images[:512])
    before = {name: tensor.clone() for name, tensor in adapter.watch.state_dict().items()}
    adapter.answer(dark(images[512:576]))
    after = adapter.watch.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert told(adapter, dark(images[576:])) == [0]


def test_what_is_learned_late_counts_for_the_domain_that_it_was_answered_in():
    images, _ = fashion(704)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"))
    told(adapter, images[:512])
    _, pending = adapter.answer(dark(images[512:576]))
    told(adapter, images[576:640])
    before = adapter.output.state_dict()
    assert int(before["domain"]) == 0
    adapter.learn_from(pending)
    after = adapter.output.state_dict()
    assert adapter.last.extra["new_domain"] == 1
    assert int(after["domain"]) == int(adapter.watch.place) == 1
    assert torch.equal(after["bias"][0], before["bias"][0])
    assert not torch.equal(after["bias"][1], before["bias"][1])
    assert told(adapter, images[640:]) == [0]
    assert int(adapter.output.state_dict()["domain"]) == 0


def test_a_reading_that_says_the_same_of_everything_is_not_relied_on():
    record = TrackRecord(3, 5)
    labels = torch.randint(5, (256,), generator=torch.Generator().manual_seed(0)).tolist()
    counts = record.counts().after(said(*[[0, 0, label] for label in labels]), 0.5, 256)
    assert counts.weights()[2] > 0.95


def test_where_labels_cluster_a_reading_that_jumps_about_is_not_relied_on():
    record = TrackRecord(3, 5)
    generator = torch.Generator().manual_seed(0)
    counts = record.counts()
    for label in torch.randint(5, (40,), generator=generator).tolist():
        guesses = torch.randint(5, (20,), generator=generator)
        guesses[::2] = label
        counts = counts.after(said(*[[label, label, guess] for guess in guesses.tolist()]), 0.5, 20)
    assert counts.weights()[2] < 0.15


def test_the_estimates_follow_what_the_answers_show():
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    images, _ = fashion(640)
    adapter, source = create("grotta+", model), create("source", model)
    agreed, sure = [], []
    for x in images.split(64):
        probs = adapter(x)
        agreed.append((probs.argmax(1) == source(x).argmax(1)).double().mean())
        sure.append(probs.amax(1).double().mean())
    fading = torch.tensor([0.9**age for age in reversed(range(10))], dtype=torch.float64)
    expected = [(torch.stack(x) @ fading / fading.sum()).item() for x in (sure, agreed)]
    extra = adapter.last.extra
    assert [extra["estimated_accuracy"], extra["source_accuracy"]] == pytest.approx(expected, abs=1e-5)


def test_on_clean_pictures_it_is_about_as_good_as_the_source():
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    images, labels = fashion()
    plus = create("grotta+", model)
    assert error(plus, images, labels) < error(create("source", model), images, labels) + 1.0
    assert plus.last.extra["source_accuracy"] > 0.9


def without_batch_norm():
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), pool, nn.Linear(8, 5))


def without_statistics():
    model = small_model()
    model[1] = nn.BatchNorm2d(6, track_running_stats=False)
    return model


@pytest.mark.filterwarnings("ignore:method 'grotta")
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (without_batch_norm, {"train": False}),
        (without_batch_norm, {"preset": "fast"}),
        (without_batch_norm, {"preset": "lite"}),
        (without_statistics, {}),
        (lambda: small_model(norm="none"), {}),
    ],
)
def test_a_network_that_can_be_read_in_one_way_is_read_so(make, options):
    torch.manual_seed(0)
    model = make()
    plus, source = create("grotta+", model, output=None, **options), create("source", model)
    streamed, outside = create("grotta+", model, **options), create("source", model, output="stream")
    for x in batches():
        torch.testing.assert_close(plus(x), source(x))
        torch.testing.assert_close(streamed(x), outside(x))


def test_a_network_without_batch_norm_is_read_as_it_is_and_trained():
    """The answer is the weighted mean of the two, which differ when the second has been moved away."""
    torch.manual_seed(0)
    adapter = create("grotta+", without_batch_norm().double(), output=None)
    assert adapter.readings == ("source", "tracked")
    (x,) = batches((16,))
    x = x.double()
    assert torch.equal(adapter.source(x)[0], adapter.tracked(x)[0])
    adapter.tracked.body[1].weight.data += 1
    adapter.trainer.steps += 1
    with torch.no_grad():
        logs = [net(x)[0].log_softmax(1) for net in (adapter.source, adapter.tracked)]
    weights = adapter.record.counts().after(torch.stack(logs, 1), adapter.keeps, 16).weights()
    pooled = float(weights[0]) * logs[0] + float(weights[1]) * logs[1]
    torch.testing.assert_close(adapter(x), pooled.softmax(1))
    assert not torch.allclose(logs[0], logs[1])
    assert adapter.last.extra["source_weight"] == pytest.approx(float(weights[SOURCE]))


@pytest.mark.parametrize(("experts", "expected"), [(1, 12 + 3), (2, 24), (4, 24)])
def test_of_two_readings_one_may_be_asked(experts, expected):
    adapter = create("grotta+", without_batch_norm(), experts=experts, probe_every=4)
    adapter.trainer.steps += 1  # as if something had been trained
    counts = passes(adapter)
    for x in batches((4,) * 12):
        adapter(x)
    assert sum(counts.values()) == expected


@pytest.mark.parametrize("experts", [1, 2, 4])
@pytest.mark.parametrize("first", [0, 1])
def test_before_anything_is_trained_the_two_readings_are_one(experts, first):
    """Whoever leads, the trained network is not run, and the answers are the source's."""
    torch.manual_seed(0)
    model = without_batch_norm()
    adapter, source = create("grotta+", model, experts=experts, probe_every=4, output=None), create("source", model)
    counts = passes(adapter)
    for x in batches((4,) * 12):
        adapter.order.copy_(torch.tensor([first, 1 - first]))
        torch.testing.assert_close(adapter(x), source(x))
    assert counts["tracked"] == 0
    assert counts["source"] >= 12


@pytest.mark.parametrize(("preset", "asked", "probes"), [("paper", 4, 48), ("fast", 2, 6), ("lite", 1, 1)])
def test_presets_ask_fewer_readings_except_on_probes(preset, asked, probes):
    adapter = create("grotta+", small_model(), preset=preset)
    counts = passes(adapter)
    for x in batches((4,) * 48):
        adapter(x)
    assert sum(counts.values()) == asked * (48 - probes) + 4 * probes


def test_a_probe_is_no_part_of_the_answer():
    """About the first batch all are asked; later ones who does not lead is asked when the batch is learned."""
    adapter = create("grotta+", small_model(), experts=1, probe_every=3)
    for place, x in enumerate(batches((4,) * 9)):
        leads = READINGS[int(adapter.order[0])]
        counts = passes(adapter)
        _, pending = adapter.answer(x)
        assert {name for name in counts if counts[name]} == ({leads} if place else set(READINGS))
        adapter.learn_from(pending)
        assert set(counts.values()) == ({1} if place % 3 == 0 else {0, 1})


def test_who_was_not_asked_is_asked_as_if_it_had_been():
    """A probe takes the record where it would have gone had all been asked at once, but for what the leader knew."""
    adapter = create("grotta+", small_model(torch.float64), experts=1, probe_every=2, output=None)
    first, second, third = (x.double() for x in batches((16, 16, 16)))
    adapter(first)
    adapter.order.copy_(torch.tensor([SOURCE, 1, 2, 3]))
    adapter(second)
    labels = adapter._labels_so_far(Seen({e: read(adapter, name, third) for e, name in enumerate(READINGS[:3])}, []))
    with torch.no_grad(), observing(labels):
        logs = [read(adapter, name, third) for name in READINGS]
    expected = adapter.record.counts().after(torch.stack(logs, 1), adapter.keeps, 32, following=False)
    probs, pending = adapter.answer(third)
    torch.testing.assert_close(probs, logs[SOURCE].exp())
    adapter.learn_from(pending)
    torch.testing.assert_close(adapter.record.counts(), expected)
    assert adapter.order.tolist() == expected.weights().argsort(descending=True).tolist()


def test_all_are_asked_soon_after_the_pictures_change():
    images, _ = fashion(640)
    adapter = create("grotta+", grotta.models.create_model("fashion_resnet8", weights="bundled"), preset="lite")
    for x in images.split(64)[:5]:
        adapter(x)
    asked = passes(adapter)
    for x in images.split(64)[5:8]:
        adapter(x)
    assert sum(asked.values()) == 3  # nothing has changed: one reading each
    for x in images.split(64)[5:8]:
        adapter(255 - x // 2)
    assert sum(asked.values()) > 3 + 3


def test_a_probe_settles_who_is_asked_next():
    adapter = create("grotta+", small_model(), experts=1, probe_every=4)
    counts = passes(adapter)
    for place, x in enumerate(batches((4,) * 12)):
        before = dict(counts)
        best = READINGS[int(adapter.order[0])]
        adapter(x)
        asked = {name for name in counts if counts[name] > before[name]}
        assert asked == (set(READINGS) if place % 4 == 0 else {best})
    assert sorted(adapter.order.tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"experts": 5}, "experts must be at most 4, got 5"),
        ({"bold_k": -1}, "bold_k must be at least 0, got -1"),
        ({"bold_sharpness": 0}, "bold_sharpness must be positive, got 0"),
        ({"experts": 0}, "experts must be at least 1, got 0"),
        ({"probe_every": 0}, "probe_every must be at least 1"),
        ({"memory": 2}, r"memory must be in \[0, 1\], got 2"),
        ({"lr": 0}, "lr must be positive, got 0"),
        ({"train": 1}, "train must be True or False, got 1"),
    ],
)
def test_mistaken_options_are_refused(options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        create("grotta+", small_model(), **options)


@pytest.mark.slow
@pytest.mark.parametrize("garbage", ["noise", "constant", "one class"])
def test_three_thousand_batches_of_garbage_are_forgotten_within_twenty(garbage):
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    images, labels = fashion(4000)
    one = images[labels == 8]
    generator = torch.Generator().manual_seed(0)
    clean, poisoned = create("grotta+", model), create("grotta+", model)
    for i in range(3000):
        shape = (64, *images.shape[1:])
        bad = torch.rand(shape, generator=generator) if garbage == "noise" else torch.full(shape, 0.5)
        poisoned(one[torch.arange(64 * i, 64 * (i + 1)) % len(one)] if garbage == "one class" else bad)
    for adapter in (clean, poisoned):
        error(adapter, images[:1280], labels[:1280])
    expected = error(clean, images[1280:], labels[1280:])
    found = error(poisoned, images[1280:], labels[1280:])
    assert found < expected + 1, f"{found:.2f} instead of {expected:.2f}"
