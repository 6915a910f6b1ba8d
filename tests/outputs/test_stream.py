import math
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import grotta
from grotta import outputs
from grotta.checks import batches, small_model
from grotta.outputs import domain_bias, stream
from grotta.outputs.base import MOST_DOMAINS, Domain

NO_FEATURES = torch.zeros(0)


def stream_of(samples=1600, classes=10, *, run=40, right=0.6, strength=3.0, seed=0):
    """Labels in runs of ``run`` (1: in random order), and answers with this share of correct ones, rather unsure."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (samples // run,), generator=generator).repeat_interleave(run)
    wrong = torch.rand(len(labels), generator=generator) > right
    said = torch.where(wrong, torch.randint(classes, labels.shape, generator=generator), labels)
    logits = torch.randn(len(labels), classes, generator=generator)
    logits[torch.arange(len(labels)), said] += strength
    return labels, logits.softmax(1)


def answers_of(adaptation, probs, size=64):
    return torch.cat([adaptation(batch, NO_FEATURES).probs for batch in probs.split(size)])


def errors(probs, labels):
    return 100 * (probs.argmax(1) != labels).float().mean().item()


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_runs_of_labels_mend_most_mistakes_in_batches_of_any_size():
    labels, probs = stream_of()
    raw = errors(probs, labels)
    whole = errors(answers_of(outputs.create("stream", 10), probs), labels)
    single = errors(answers_of(outputs.create("stream", 10), probs[:640], 1), labels[:640])
    assert raw > 30
    assert whole < 0.7 * raw
    assert single < 0.85 * errors(probs[:640], labels[:640])


@pytest.mark.parametrize(("classes", "worth"), [(10, 1.0), (400, 8.0), (1000, 64.0)])
def test_what_the_base_is_worth_is_inferred(classes, worth):
    """Runs of a hundred images, each with a mix drawn at gamma 0.1: of many classes, neighbours do not show all."""
    generator = torch.Generator().manual_seed(0)
    mixes = torch.tensor(np.random.default_rng(0).dirichlet(np.full(classes, 0.1), 20))
    labels = torch.multinomial(mixes, 100, replacement=True, generator=generator).flatten()
    logits = torch.randn(len(labels), classes, generator=generator)
    logits[torch.arange(len(labels)), labels] += 9.0
    adaptation = outputs.create("stream", classes)
    answers_of(adaptation, logits.softmax(1))
    evidence = adaptation.state_dict()["scale_evidence"][1:].view(len(adaptation.bases), len(adaptation.scales))
    assert adaptation.bases[int(evidence.amax(1).argmax())] == worth


def test_answers_in_random_order_stay_as_they_are():
    labels, probs = stream_of(run=1, right=0.8)
    adaptation = outputs.create("stream", 10)
    out = answers_of(adaptation, probs)
    assert errors(out, labels) < errors(probs, labels) + 0.3
    later = slice(640, None)
    assert (out[later].argmax(1) == probs[later].argmax(1)).float().mean() > 0.97
    assert float(adaptation.refine(probs[:64], NO_FEATURES).numbers["shift"]) < 0.05


def test_shift_and_temperature_are_told():
    _, probs = stream_of()
    adaptation = outputs.create("stream", 10)
    answers_of(adaptation, probs)
    numbers = adaptation(probs[:64], NO_FEATURES).numbers
    assert 0.9 < float(numbers["shift"]) <= 1
    assert 1 <= float(numbers["temperature"]) <= 4
    adapter = grotta.create("source", small_model(), output="stream")
    adapter(next(batches((8,))))
    assert set(adapter.last.extra) == {"shift", "temperature"}


@pytest.mark.parametrize("classes", [2, 10, 300, 1000])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_rows_are_probabilities_for_any_number_of_classes(classes, size):
    _, probs = stream_of(4 * size if size > 1 else 12, classes, run=1)
    out = answers_of(outputs.create("stream", classes), probs, size)
    assert out.shape == probs.shape
    assert out.isfinite().all()
    assert out.min() >= 0
    torch.testing.assert_close(out.sum(1), torch.ones(len(out)), atol=1e-5, rtol=0)


def test_classes_beyond_the_buckets_are_read_as_well():
    """Classes 3 and 259 share a row of the confusion; the labels themselves do not share anything."""
    labels, probs = stream_of(960, stream.BUCKETS + 44, strength=5.0)
    out = answers_of(outputs.create("stream", stream.BUCKETS + 44), probs)
    assert errors(out, labels) < 0.9 * errors(probs, labels)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 100))
def test_refining_changes_nothing_and_calling_observes(sizes, seed):
    _, probs = stream_of(240, 4, seed=seed)
    adaptation = outputs.create("stream", 4)
    for batch in probs[: sum(sizes)].split(sizes):
        before = adaptation.state_dict()
        refined = adaptation.refine(batch, NO_FEATURES)
        assert same(before, adaptation.state_dict())
        assert torch.equal(adaptation(batch, NO_FEATURES).probs, refined.probs)
        assert not same(before, adaptation.state_dict())


def test_observing_late_counts_from_the_state_that_is_there_then():
    _, probs = stream_of(192, 4)
    first, second = probs[:64], probs[64:128]
    late, straight = outputs.create("stream", 4), outputs.create("stream", 4)
    answer = late.refine(second, NO_FEATURES)  # answered before the first batch was observed
    late(first, NO_FEATURES)
    late.observe(second, NO_FEATURES, answer)
    straight(first, NO_FEATURES)
    straight(second, NO_FEATURES)
    assert same(late.state_dict(), straight.state_dict())


def domain(place, *, begins=False, returns=False):
    return Domain(torch.tensor(place), torch.tensor(begins), torch.tensor(returns))


def read(adaptation, probs, domain):
    """Answers of a batch from this domain, which is observed."""
    output = adaptation.refine(probs, NO_FEATURES, domain=domain)
    adaptation.observe(probs, NO_FEATURES, output)
    return output.probs


def biases_by_hand(batches, bounds, classes, *, longest=2048.0):
    """The mean log-probabilities of each domain, (place, begins, returns) of each batch given; at temperature 1.

    ``bounds`` are how far a bias could go, as a logarithm, just before each batch.
    """
    bias, weight, last = {}, {}, None
    for (probs, (place, begins, returns)), most in zip(batches, bounds):
        if place not in bias or (begins and not returns):
            believed = torch.zeros(classes, dtype=torch.float64) if last is None else bias[last] - bias[last].mean()
            bias[place] = believed.clamp(-most, most) / 2
            weight[place] = 512.0
        total = weight[place] + len(probs)
        logs = probs.double().log().clamp(min=-min(classes, 27.0))
        bias[place] = (weight[place] * bias[place] + logs.sum(0)) / total
        weight[place], last = min(total, longest), place
    return bias


NEW, BACK, ON = (True, False), (True, True), (False, False)


@pytest.mark.parametrize(("speed", "longest"), [(1 / 32, 2048.0), (1 / 16, 1024.0), (0.5, 128.0)])
def test_each_domain_has_a_bias_of_its_own(speed, longest):
    """Domain 3 comes, comes back, and its place is then taken by another one."""
    course = [(0, *ON)] * 3 + [(3, *NEW)] + [(3, *ON)] * 2 + [(0, *BACK), (3, *BACK), (1, *NEW), (3, *NEW), (3, *ON)]
    _, probs = stream_of(64 * len(course), 5, run=64)
    adaptation = outputs.create("stream", 5, temperatures=(1.0,), speed=speed)
    batches = list(zip(probs.split(64), course))
    bounds = []
    for batch, (place, begins, returns) in batches:
        bounds.append(float(adaptation.state_dict()["most"]))
        read(adaptation, batch, domain(place, begins=begins, returns=returns))
    found = adaptation.state_dict()["bias"]
    assert found.shape == (MOST_DOMAINS, 1, 5)
    expected = biases_by_hand(batches, bounds, 5, longest=longest)
    for place in range(MOST_DOMAINS):
        right = expected.get(place, torch.zeros(5, dtype=torch.float64))
        torch.testing.assert_close(found[place, 0].double(), right, atol=1e-5, rtol=1e-5)
    assert int(adaptation.state_dict()["domain"]) == 3


def one_sided(n, of, classes=4, seed=0):
    """Answers that favour a class."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator)
    logits[:, of] += 2
    return logits.softmax(1)


def test_a_returning_domain_gets_its_own_bias_back_and_a_new_one_half_of_the_last():
    adaptation = outputs.create("stream", 4)
    for _ in range(20):
        read(adaptation, one_sided(64, 0), domain(0))
    first = adaptation.state_dict()["bias"][0]
    assert bool((first[:, 0] > first[:, 1:].amax(1) + 0.3).all())
    nothing = torch.full((1, 4), 0.25)  # one answer that says nothing
    read(adaptation, nothing, domain(1, begins=True))
    second = adaptation.state_dict()["bias"][1]
    believed = (first - first.mean(1, keepdim=True)).clamp(-math.log(1.5), math.log(1.5))
    torch.testing.assert_close(second, (believed / 2 * 512 + math.log(0.25)) / 513)
    for _ in range(20):
        read(adaptation, one_sided(64, 3), domain(1))
    assert torch.equal(adaptation.state_dict()["bias"][0], first)
    read(adaptation, nothing, domain(0, begins=True, returns=True))
    seen = 512 + 20 * 64
    torch.testing.assert_close(adaptation.state_dict()["bias"][0], (first * seen + math.log(0.25)) / (seen + 1))


def test_the_answers_are_read_in_the_light_of_the_bias_of_their_domain():
    adaptation = outputs.create("stream", 4)
    for place, of in ((0, 0), (1, 3)):
        probs = stream_of(1280, 4)[1]
        probs[:, of] *= 3
        for i, batch in enumerate(probs.split(64)):
            read(adaptation, batch / batch.sum(1, keepdim=True), domain(place, begins=place == 1 and i == 0))
    doubtful = torch.tensor([[0.4, 0.1, 0.1, 0.4]]).repeat(16, 1)
    back = [domain(place, begins=True, returns=True) for place in (0, 1)]
    answers = [adaptation.refine(doubtful, NO_FEATURES, domain=there).numbers.reading for there in back]
    first, second = (reading.after["labels"][-len(doubtful) :].mean((0, 1)) for reading in answers)
    assert first[0] < second[0]  # where the first class is answered too often, it is the less likely
    assert first[3] > second[3]


def test_without_domains_there_is_one_bias():
    _, probs = stream_of(320, 4)
    plain, told, later = (outputs.create("stream", 4) for _ in range(3))
    for batch in probs.split(64):
        out = plain(batch, NO_FEATURES).probs
        assert torch.equal(out, read(told, batch, domain(0)))
        assert torch.equal(out, read(later, batch, None))
    state = plain.state_dict()
    assert same(state, told.state_dict())
    assert same(state, later.state_dict())
    assert not torch.allclose(state["bias"][0], torch.zeros(4), atol=1e-3)
    assert bool((state["bias"][1:] == 0).all())
    assert int(state["domain"]) == 0


def runs_of(classes, n=640, *, seed=0):
    """Answers that are sure and right, of labels in runs of these classes out of four."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.tensor(classes).repeat_interleave(16).repeat(n)[:n]
    logits = torch.randn(n, 4, generator=generator)
    logits[torch.arange(n), labels] += 6
    return logits.softmax(1)


@pytest.mark.parametrize(("classes", "most"), [((0, 1, 2, 3), 3.0), ((0,), 1.5), ((0, 1), 2.1)])
def test_a_bias_may_go_further_where_labels_were_even(classes, most):
    """Two of four classes fill a third of the way from one to four: between the two bounds."""
    adaptation = outputs.create("stream", 4)
    for batch in runs_of(classes).split(64):
        read(adaptation, batch, domain(0))
        assert float(adaptation.state_dict()["most"].exp()) == pytest.approx(1.5)  # nothing came before this domain
    for i in range(20):
        read(adaptation, one_sided(64, 3, seed=i), domain(1, begins=i == 0))
        assert float(adaptation.state_dict()["most"].exp()) == pytest.approx(most, abs=0.15)


def test_no_class_is_taken_for_more_favoured_than_the_bound():
    adaptation = outputs.create("stream", 4, temperatures=(1.0,))
    sure = torch.tensor([[0.97, 0.01, 0.01, 0.01]]).repeat(64, 1)
    for _ in range(30):
        adaptation(sure, NO_FEATURES)
    state = adaptation.state_dict()
    favoured = domain_bias.read_bias(state, sure[:, None], None, 2048.0).favoured[0]
    assert state["bias"][0, 0, 0] - state["bias"][0, 0, 1] > math.log(2)  # what was learned goes further ...
    torch.testing.assert_close(favoured, torch.tensor([1.5, 2 / 3, 2 / 3, 2 / 3]))  # ... than what is believed


@pytest.mark.parametrize("classes", [2, 10, 50, 400])
def test_labels_that_are_a_little_uneven_move_the_bias_as_they_move_the_mix(classes):
    """Sure and right answers: the bias is the logarithm of the label's share, while that is about 1/C."""
    images = 20 * classes
    labels = torch.arange(classes).repeat_interleave(20)
    labels[::40] = 0  # one in forty of all labels more
    probs = torch.full((images, classes), 1e-13)
    probs[torch.arange(images), labels] = 1.0
    state = domain_bias.no_bias(1, classes)
    state["bias_images"].zero_()
    found = domain_bias.read_bias(state, probs[:, None], None, 1e9).after["bias"][0, 0]
    share = (labels == 0).float().mean() - 1 / classes
    against = min(classes, 27.0)
    torch.testing.assert_close(found[0] - found.mean(), against * share, atol=1e-4, rtol=0.06)
    if classes <= 10:
        assert float(found[0] - found.mean()) == pytest.approx(math.log(1 + classes * share), abs=0.06)


LOST = torch.tensor([0.05, 0.05, 0.85, 0.05])


def state_after(course, classes=4):
    adaptation = outputs.create("stream", classes)
    for probs, there in course:
        read(adaptation, probs, there)
    return adaptation


def test_what_a_new_domain_seems_to_show_waits_where_labels_came_in_random_order():
    """A network that is lost and always says the same looks like labels that cluster."""
    _, probs = stream_of(1280, 4, run=1, right=0.9)
    adaptation = state_after([(batch, domain(0)) for batch in probs.split(64)])
    before = adaptation.state_dict()
    assert float(before["for_reading"]) < 0
    lost = LOST.repeat(64, 1)
    for i in range(4):
        read(adaptation, lost, domain(1, begins=i == 0))
        state = adaptation.state_dict()
        assert int(state["held"]) == 256 - 64 * (i + 1)
        for name in ("scale_evidence", "confidence", "kept", "samples", "unsuspected", "unread_evidence"):
            torch.testing.assert_close(state[name], before[name], msg=name)
    read(adaptation, lost, domain(1))
    assert not torch.equal(adaptation.state_dict()["scale_evidence"], before["scale_evidence"])


def test_where_labels_cluster_a_new_domain_counts_at_once():
    _, probs = stream_of(1280, 4)
    adaptation = state_after([(batch, domain(0)) for batch in probs.split(64)])
    before = adaptation.state_dict()
    assert float(before["for_reading"]) > 0
    read(adaptation, LOST.repeat(64, 1), domain(1, begins=True))
    state = adaptation.state_dict()
    assert int(state["held"]) == 0
    assert not torch.equal(state["scale_evidence"], before["scale_evidence"])


def test_what_is_left_out_where_nothing_begins_changes_no_bit(monkeypatch):
    """On a device nobody looks whether a domain begins: all of it is computed."""
    _, probs = stream_of(640, 4, run=1)
    begins = {3: domain(1, begins=True), 7: domain(0, begins=True, returns=True)}
    course = [(batch, begins.get(i, domain(1 if 3 <= i < 7 else 0))) for i, batch in enumerate(probs.split(64))]
    looked = state_after(course).state_dict()
    for module in (stream, domain_bias):
        monkeypatch.setattr(module, "surely_false", lambda flag: False)
    assert same(looked, state_after(course).state_dict())
    assert float(looked["held"]) == 64  # of the 256 after the return


def test_who_stops_telling_domains_stays_in_the_last():
    _, probs = stream_of(192, 4)
    one, other = outputs.create("stream", 4), outputs.create("stream", 4)
    for adaptation, last in ((one, domain(2)), (other, None)):
        read(adaptation, probs[:64], domain(0))
        read(adaptation, probs[64:128], domain(2, begins=True))
        read(adaptation, probs[128:], last)
    assert same(one.state_dict(), other.state_dict())


def test_observing_late_counts_for_the_domain_that_was_told():
    _, probs = stream_of(192, 4)
    first, second, third = probs.split(64)
    there = domain(5, begins=True)
    late, straight = outputs.create("stream", 4), outputs.create("stream", 4)
    for adaptation in (late, straight):
        read(adaptation, first, domain(0))
    answer = late.refine(third, NO_FEATURES, domain=there)
    read(late, second, domain(0))
    late.observe(third, NO_FEATURES, answer)
    read(straight, second, domain(0))
    read(straight, third, there)
    assert same(late.state_dict(), straight.state_dict())
    assert int(late.state_dict()["domain"]) == 5


def test_biases_of_domains_are_saved_and_restored():
    _, probs = stream_of(256, 4)
    one, two = outputs.create("stream", 4), outputs.create("stream", 4)
    read(one, probs[:64], domain(0))
    read(one, probs[64:128], domain(7, begins=True))
    two.load_state_dict(one.state_dict())
    for batch, there in ((probs[128:192], domain(0, begins=True, returns=True)), (probs[192:], domain(3, begins=True))):
        assert torch.equal(read(one, batch, there), read(two, batch, there))
    assert same(one.state_dict(), two.state_dict())


def test_saved_and_restored_goes_on_bit_for_bit():
    _, probs = stream_of(400, 6)
    one, two = outputs.create("stream", 6), outputs.create("stream", 6)
    answers_of(one, probs[:200], 30)
    state = one.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    two.load_state_dict(state)
    assert torch.equal(answers_of(one, probs[200:], 30), answers_of(two, probs[200:], 30))
    assert same(one.state_dict(), two.state_dict())
    assert same(state, kept)
    one.reset()
    assert same(one.state_dict(), outputs.create("stream", 6).state_dict())


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    adaptation = outputs.create("stream", 4)
    answers_of(adaptation, stream_of(64, 4)[1])
    before = adaptation.state_dict()
    with pytest.raises(ValueError, match="must have .*'kept'"):
        adaptation.load_state_dict({"bias": before["bias"]})
    with pytest.raises(ValueError, match="must have shape"):
        adaptation.load_state_dict(outputs.create("stream", 5).state_dict())
    with pytest.raises(ValueError, match="'raw' and 'labels' must be of as many samples, got 10 and 40"):
        adaptation.load_state_dict({**before, "raw": before["raw"][:10]})
    assert same(before, adaptation.state_dict())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temperatures": ()}, "temperatures must have at least one value"),
        ({"temperatures": (0.0,)}, "temperatures must be positive, got 0"),
        ({"speed": 2.0}, r"speed must be in \[0, 1\], got 2"),
        ({"scales": (-1.0,)}, "scales must be positive, got -1"),
        ({"bases": ()}, "bases must have at least one value"),
        ({"bases": (0.0,)}, "bases must be positive, got 0"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"forgetting": 1.5}, r"forgetting must be in \[0, 1\], got 1.5"),
    ],
)
def test_mistaken_options_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        outputs.create("stream", 5, **options)


def test_certain_answers_are_no_trouble():
    certain = torch.eye(4).repeat_interleave(20, 0)
    out = answers_of(outputs.create("stream", 4), certain, 16)
    assert out.isfinite().all()
    assert (out.argmax(1) == certain.argmax(1)).float().mean() > 0.9


@pytest.mark.parametrize("garbage", ["one class", "uniform"])
def test_garbage_is_forgotten_within_twenty_batches(garbage):
    labels, probs = stream_of(9600, run=50)
    bad = torch.full((64, 10), 1e-3) if garbage == "one class" else torch.full((64, 10), 0.1)
    bad[:, 3] += 1 - bad[0].sum()
    clean, poisoned = outputs.create("stream", 10), outputs.create("stream", 10)
    for _ in range(100):
        poisoned(bad, NO_FEATURES)
    later = slice(20 * 64, None)
    expected = errors(answers_of(clean, probs)[later], labels[later])
    assert errors(answers_of(poisoned, probs)[later], labels[later]) < expected + 1


def test_a_long_stretch_of_one_class_is_forgotten_soon():
    """In random order after it, time explains nothing; only a mean that is still wrong makes it seem so."""
    _, one_class = stream_of(12_800, run=12_800, right=0.95, strength=5.0)
    labels, probs = stream_of(1920, run=1, right=0.8, strength=5.0)
    adaptation = outputs.create("stream", 10)
    answers_of(adaptation, one_class)
    read = [adaptation(batch, NO_FEATURES) for batch in probs.split(64)]
    assert max(float(output.numbers["shift"]) for output in read[20:]) < 0.05
    assert errors(torch.cat([output.probs for output in read]), labels) < errors(probs, labels) + 1


@pytest.mark.parametrize(("size", "classes", "times"), [(512, 10, 120), (1024, 2, 60)])
def test_certain_answers_of_one_class_for_good_are_no_trouble(size, classes, times):
    """The usual mix has nothing left for the other classes by then."""
    certain = torch.zeros(size, classes)
    certain[:, 0] = 1
    adaptation = outputs.create("stream", classes)
    for _ in range(times):
        out = adaptation(certain, NO_FEATURES).probs
    assert out.isfinite().all()
    assert all(tensor.isfinite().all() for tensor in adaptation.state_dict().values())
    out = adaptation(torch.full((8, classes), 1 / classes), NO_FEATURES).probs
    torch.testing.assert_close(out.sum(1), torch.ones(8))


def test_threads_may_refine_batches_of_different_sizes_at_once():
    adaptation = outputs.create("stream", 10)
    answers_of(adaptation, stream_of(640)[1])
    batches = [stream_of(40, run=1)[1][:size] for size in (1, 2, 3, 5)]
    alone = [adaptation.refine(batch, NO_FEATURES).probs for batch in batches]
    wrong = []

    def ask(i):
        for _ in range(150):
            try:
                if not torch.equal(adaptation.refine(batches[i], NO_FEATURES).probs, alone[i]):
                    wrong.append(i)
            except RuntimeError as error:
                wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(batches))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


def test_a_guarded_answer_is_observed_as_it_went_out_however_late():
    adapters = [grotta.create("tent", small_model(), output="stream", guard=True) for _ in range(2)]
    first, second, third = batches((32, 32, 32))
    for adapter in adapters:
        adapter(first)
        adapter._guard.fallen = True  # the source answers
    direct, late = adapters
    _, pending = direct.answer(third)
    direct.learn_from(pending)
    torch.testing.assert_close(direct.output.state_dict()["raw"][-32:], pending.source)
    assert not torch.allclose(pending.source, pending.probs)
    _, before = late.answer(second)
    _, pending = late.answer(third)
    late.learn_from(before)
    late.learn_from(pending)
    torch.testing.assert_close(late.output.state_dict()["raw"][-32:], pending.source)


def test_double_stays_double():
    _, probs = stream_of(128, 4)
    assert answers_of(outputs.create("stream", 4), probs.double()).dtype == torch.float64


def test_answers_as_they_came_are_judged_by_rows_of_the_confusion_as_those_that_are_read():
    classes = 2 * stream.BUCKETS
    adaptation = stream.StreamPrior(classes)
    generator = torch.Generator().manual_seed(0)
    for _ in range(8):  # labels in random order, so reading explains nothing
        answers = torch.randint(classes, (64,), generator=generator)
        probs = torch.full((64, classes), 0.4 / (classes - 1)).scatter_(1, answers[:, None], 0.6)
        adaptation(probs, probs)
    state = adaptation.state_dict()
    explained = state["answer_evidence"][0] - state["unread_evidence"]
    assert float(explained) < 64 * np.log(2)  # asked for the class itself, it would be more with each batch


def test_without_speed_no_bias_is_learned():
    adaptation = stream.StreamPrior(3, speed=0)
    adaptation(torch.tensor([[0.8, 0.1, 0.1]]).repeat(64, 1))
    assert adaptation.state_dict()["bias"].eq(0).all()
