"""Training on a fair sample, by itself and in GRoTTA+."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grotta.checks import run, same, same_state
from grotta.functional.information import evenness
from grotta.methods import create
from grotta.methods.fair_training import BLOCK, CALM, CLEAR, FEWEST, OVERRULED, PULL, REMEMBERED
from grotta.outputs import Output

NORMS = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(2, channels),
    "bare": lambda channels: nn.BatchNorm2d(channels, affine=False),
}


FIRST = 3 * BLOCK  # images before the first step: two blocks, the one between them included


def plus(model, **options):
    """GRoTTA+, which trains unless the options say otherwise."""
    return create("grotta+", model, **options)


def patterns(classes):
    """What an image of each class looks like."""
    return torch.rand(classes, 3, 12, 12, generator=torch.Generator().manual_seed(1))


def classifier(classes=5, norm="batch"):
    """A network that recognises the patterns: its head measures the distance of features to theirs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pool = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten())
        body = nn.Sequential(nn.Conv2d(3, 8, 3), NORMS[norm](8), nn.ReLU(), pool)
        head = nn.Linear(72, classes)
    with torch.no_grad():
        if norm != "group":
            body[1].momentum = 1.0
            body(patterns(classes))
        features = body.eval()(patterns(classes))
        head.weight.copy_(features / 2)
        head.bias.copy_(-features.square().sum(1) / 4)
    return nn.Sequential(*body, head).eval()


def pictures(labels, classes, seed=0):
    """Noisy images of these classes."""
    noise = torch.rand(len(labels), 3, 12, 12, generator=torch.Generator().manual_seed(seed))
    return torch.lerp(patterns(classes)[labels], noise, 0.3)


def fair(*sizes, classes=5, seed=0):
    """A stream of all classes, in batches of these sizes."""
    labels = torch.randint(classes, (sum(sizes),), generator=torch.Generator().manual_seed(seed))
    return pictures(labels, classes, seed).split(sizes)


def one_sided(*sizes, classes=10):
    """Three of the classes only, in turn: neighbours in time are not alike."""
    return pictures(torch.arange(sum(sizes)) % 3, classes).split(sizes)


def in_runs(*sizes, classes=5, run=32):
    """All classes, but the same one for a while."""
    return pictures(torch.arange(sum(sizes)) // run % classes, classes).split(sizes)


def said(labels, classes=5):
    """Probabilities of which these are the answers."""
    return F.one_hot(torch.as_tensor(labels), classes).double().softmax(1)


def show(trainer, images, *, overruled=0, clustered=0.0):
    """So many images of five classes in turn, of which the first answers are ``overruled``; a step when it is due."""
    labels = torch.arange(images) % 5
    before = torch.where(torch.arange(images) < overruled, labels + 1, labels) % 5
    trainer.remember(pictures(labels, 5), said(labels), said(before))
    if not trainer.is_due:
        return None
    with torch.no_grad():
        return trainer.step(trainer.memory.contents()[0], clustered)


def trained(steps=2):
    """A trainer after so many steps, and what it started from."""
    adapter = plus(classifier())
    source = affine(adapter)
    losses = [show(adapter.trainer, 64) for _ in range(FIRST // 64 + steps - 1)]
    assert [loss is not None for loss in losses] == [False] * (FIRST // 64 - 1) + [True] * steps
    return adapter.trainer, source


def affine(adapter):
    """Copies of what is trained."""
    return [p.detach().clone() for group in adapter.optimizer.param_groups for p in group["params"]]


def values(trainer):
    """The same of a trainer."""
    return [p.detach().clone() for p in trainer.origin.trained]


def steps(adapter):
    """How many steps Adam has taken."""
    return max((int(state["step"]) for state in adapter.optimizer.state.values()), default=0)


def test_the_classifier_is_one():
    labels = torch.arange(100)
    for classes in (5, 10, 100):
        for norm in ("batch", "group"):
            answers = classifier(classes, norm)(pictures(labels % classes, classes)).argmax(1)
            assert (answers == labels % classes).float().mean() > 0.95


@pytest.mark.parametrize("classes", [5, 100])
def test_the_memory_is_balanced_by_the_answers_and_bounded(classes):
    """Nine of ten answers are of one class; each image shows when it came."""
    trainer = plus(classifier(classes)).trainer
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (1500,), generator=generator)
    labels[torch.rand(1500, generator=generator) < 0.9] = 0
    images = (torch.arange(1500.0) / 1500)[:, None, None, None].expand(-1, 3, 12, 12)
    for place in range(0, 1500, 50):
        trainer.remember(images[place : place + 50], said(labels[place : place + 50], classes))
        assert len(trainer.memory) <= 64
    kept = trainer.memory.counts()
    assert kept.sum() == len(trainer.memory) == 64
    assert kept.max() <= -(-64 // classes)
    assert kept.min() >= 64 // classes
    came = (trainer.memory.contents()[0][:, 0, 0, 0] * 1500).round().long()
    assert torch.equal(torch.bincount(labels[came], minlength=classes), kept)
    assert came[labels[came] == 0].min() > 1400  # of the class that is seen all the time, the latest


def test_what_is_remembered_is_the_answers_that_went_out():
    adapter = plus(classifier())
    answers = torch.cat([adapter(x).argmax(1) for x in fair(8, 1, 16)])
    assert torch.equal(adapter.memory.counts(), torch.bincount(answers, minlength=5))
    assert adapter.last.bank_size == 25
    assert torch.equal(adapter.memory.contents()[0], torch.cat(fair(8, 1, 16))[answers.argsort(stable=True)])


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [384, 448, 512]),
        (16, [384, 448, 512]),
        (64, [384, 448, 512]),
        (7, [420, 490]),  # the third block ends with image 399
        (100, [600]),  # the third block ends with it
        (300, [900, 1200]),
    ],
)
@pytest.mark.parametrize("norm", ["batch", "group"])
def test_the_first_step_is_after_three_blocks_and_the_next_after_64_images_each(norm, size, expected):
    adapter = plus(classifier(norm=norm))
    at = []
    for place, x in enumerate(fair(*[size] * (max(512, expected[-1]) // size))):
        before = steps(adapter)
        adapter(x)
        assert steps(adapter) - before == (adapter.last.loss is not None)
        if adapter.last.loss is not None:
            at.append((place + 1) * size)
    assert at == expected


def blocks_of(batches):
    """The answers in blocks, which end with the batch that fills them; the last may have begun only."""
    blocks = [[]]
    for batch in batches:
        blocks[-1] += batch
        if len(blocks[-1]) >= BLOCK:
            blocks.append([])
    return blocks[:-1]


def times_chance(batches, classes):
    """How often two answers agree, from all pairs with a block between them, which fade with the older of the two."""
    blocks, alike, pairs = blocks_of(batches), 0.0, 0.0
    for place, later in enumerate(blocks):
        for age, earlier in enumerate(reversed(blocks[: max(place - 1, 0)])):
            weight = REMEMBERED ** (len(blocks) - place + age)
            alike += weight * sum(a == b for a in earlier for b in later)
            pairs += weight * len(earlier) * len(later)
    return classes * alike / pairs


@pytest.mark.parametrize("size", [64, 1, 50, 200])
@pytest.mark.parametrize("order", ["random", "runs", "few", "changing"])
def test_pairs_of_answers_are_counted_across_blocks(order, size):
    answers = {
        "random": torch.randint(5, (900,), generator=torch.Generator().manual_seed(0)),
        "runs": torch.arange(900) // 100 % 5,
        "few": torch.arange(900) % 2,
        "changing": torch.cat([torch.arange(450) % 2, torch.arange(450) % 5]),
    }[order].split(size)
    trainer = plus(classifier()).trainer
    for place, batch in enumerate(answers, 1):
        trainer.remember(torch.zeros(len(batch), 3, 12, 12), said(batch))
        blocks = len(blocks_of([b.tolist() for b in answers[:place]]))
        assert (trainer.alike[1] > 0) == (blocks >= 3)
    alike, pairs = trainer.alike.tolist()
    assert 5 * alike / pairs == pytest.approx(times_chance([b.tolist() for b in answers], 5), rel=1e-5)


def test_labels_that_come_in_runs_are_even_if_all_of_them_come():
    """Each class for 128 images: in a block there is one only, and a block between, so are those beside it."""
    trainer = plus(classifier()).trainer
    for label in torch.arange(5).repeat(12).tolist():
        trainer.remember(torch.zeros(BLOCK, 3, 12, 12), said([label] * BLOCK))
    assert evenness(trainer.alike[0] / trainer.alike[1], 5) == 1


def preserved(x, name, w, eps=1e-5):
    """Batch normalisation by the running statistics, with the gradient of training mode."""
    mean, var = (v[:, None, None] for v in (x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)))
    spread = (var + eps).sqrt()
    x = (x - mean) / spread * spread.detach() + mean.detach()
    scale, mean_g, var_g, shift = (
        w[f"{name}.{part}"][:, None, None] for part in ("weight", "running_mean", "running_var", "bias")
    )
    return (x - mean_g) / (var_g + eps).sqrt() * scale + shift


@pytest.mark.parametrize(("classes", "rate"), [(2, 0.01), (64, 0.01), (65, 0.005), (1000, 0.005)])
def test_a_step_is_half_as_long_where_the_memory_cannot_show_every_class(classes, rate):
    adapter = plus(classifier(classes), lr=0.01)
    assert [group["lr"] for group in adapter.trainer.optimizer.param_groups] == [rate]


def test_a_step_is_one_of_adam_as_far_as_answers_are_even_and_a_little_way_back(by_hand):
    """Mutual information, evenness, Adam and the way back, all by hand."""
    net = by_hand.net()
    adapter = plus(net, lr=0.01)
    weights, adam = by_hand.leaf_weights(net), by_hand.Adam(lr=0.01)
    origin = {name: weights[name].detach().clone() for name in by_hand.affine}
    answers, shares = [], []
    for step in range(10):
        x = by_hand.images(20, seed=step)
        often = 36 + 3 * (step // 2 % 3 - 1)  # of 64, other in each block
        answers.append([0] * often + [1 + place % 4 for place in range(64 - often)])
        adapter.trainer.remember(by_hand.images(64, seed=step), said(answers[-1]))
        assert adapter.trainer.is_due
        with torch.no_grad():
            loss = adapter.trainer.step(x)
        assert not adapter.trainer.is_due
        if step < 5:
            assert loss is None
            assert adapter.trainer.is_untouched
            assert all(torch.equal(p, origin[name]) for name, p in zip(by_hand.affine, affine(adapter)))
            continue
        shares.append((2.0 - times_chance(answers, 5)) / 0.5)
        probs = by_hand.forward(weights, x, preserved)[0].softmax(1)
        expected = (probs * (probs.mean(0) / probs).log()).sum(1).mean()
        assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
        before = {name: weights[name].detach() for name in by_hand.affine}
        adam.step(weights, expected, by_hand.affine)
        for name in by_hand.affine:
            moved = before[name] + shares[-1] * (weights[name].detach() - before[name])
            weights[name] = (moved + PULL * (origin[name] - moved)).requires_grad_()
        by_hand.assert_same(adapter.tracked, weights, by_hand.affine)
        assert not adapter.trainer.is_untouched
    assert 0.1 < min(shares) < max(shares) < 0.9
    assert len(set(shares)) == 3  # of the blocks that ended with images 384, 512 and 640


def test_the_step_is_on_what_is_remembered_with_the_statistics_of_now():
    model = classifier()
    adapter, untrained = plus(model), plus(model, train=False)
    for x in fair(100, 28, *[64] * 4):
        adapter(x)
        untrained(x)  # the same statistics, the source's affine parameters
    probs = untrained.tracked(adapter.memory.contents()[0])[0].double().softmax(1)
    expected = (probs * (probs.mean(0) / probs).log()).sum(1).mean()
    assert float(adapter.last.loss) == pytest.approx(expected.item(), abs=1e-5)


def test_nothing_is_trained_before_256_images_even_if_there_are_pairs():
    trainer = plus(classifier()).trainer
    trainer.alike.copy_(torch.tensor([0.2, 1.0]))
    losses = [show(trainer, 64) for _ in range(CALM // 64)]
    assert CALM == 256
    assert [loss is None for loss in losses] == [True, True, True, False]


FAINT = (0.01, CLEAR)  # signs that may be chance
SIGNS = {  # clear ones, the second as little as is clear with what has faded of those before
    "told": lambda _: {"clustered": CLEAR + 0.01},
    "overruled": lambda trainer: {"overruled": int(OVERRULED * 256 - float(trainer.overruled[0])) + 1},
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    ("signs", "wait"),
    [([0], 512), ([0, 1], 1024), ([0, 5], 1024), ([0, 1, 2], 2048), ([0, 2, 3, 9], 4096), (range(7), 4096)],
)
def test_at_a_clear_sign_of_clusters_all_is_dropped_and_the_wait_is_longer_after_each(sign, signs, wait):
    """Signs come 64 times so many images after the first; the wait is from the last on."""
    trainer, source = trained()
    assert not same(values(trainer), source)
    for place in range(max(signs) + 1):
        assert show(trainer, 64, **(SIGNS[sign](trainer) if place in signs else {})) is None
        assert same(values(trainer), source)
        assert not trainer.optimizer.state
        assert trainer.is_untouched
    assert all(show(trainer, 64) is None for _ in range(wait // 64 - 1))
    assert same(values(trainer), source)
    assert trainer.is_untouched
    assert show(trainer, 64) is not None
    assert [int(state["step"]) for state in trainer.optimizer.state.values()] == [1, 1]
    assert not trainer.is_untouched
    assert show(trainer, 64) is not None


@pytest.mark.parametrize("faint", FAINT)
def test_a_faint_sign_drops_nothing_but_256_images_must_come_without_one(faint):
    trainer, source = trained()
    before, adam = values(trainer), copy.deepcopy(trainer.optimizer.state_dict()["state"])
    for wait in (1, 3, 4):
        assert show(trainer, 64, clustered=faint) is None
        assert all(show(trainer, 64) is None for _ in range(wait - 1))
    assert same(values(trainer), before)
    assert not same(before, source)
    assert not trainer.is_untouched
    assert all(
        torch.equal(trainer.optimizer.state_dict()["state"][p][key], adam[p][key]) for p in adam for key in adam[p]
    )
    assert show(trainer, 64) is not None
    assert [int(state["step"]) for state in trainer.optimizer.state.values()] == [3, 3]


@pytest.mark.parametrize("faint", FAINT)
def test_nothing_is_trained_before_256_images_without_a_faint_sign(faint):
    trainer = plus(classifier()).trainer
    losses = [show(trainer, 64, clustered=faint if place == 6 else 0.0) for place in range(1, 12)]
    assert [place for place, loss in enumerate(losses, 1) if loss is not None] == [10, 11]


@pytest.mark.parametrize("faint", FAINT)
@pytest.mark.parametrize(("waited", "more"), [(0, 8), (2, 6), (4, 4), (6, 4), (7, 4)])
def test_a_faint_sign_does_not_begin_the_long_wait_anew(faint, waited, more):
    """Its images do not count, and 256 without one must come last."""
    trainer, _ = trained()
    show(trainer, 64, **SIGNS["told"](trainer))
    assert all(show(trainer, 64) is None for _ in range(waited))
    assert show(trainer, 64, clustered=faint) is None
    assert all(show(trainer, 64) is None for _ in range(more - 1))
    assert show(trainer, 64) is not None


@pytest.mark.parametrize(
    ("batches", "sign"),
    [
        ([(64, 25)], False),  # 192 have been left alone
        ([(64, 26)], True),
        ([(100, 29)], False),
        ([(100, 30)], True),
        ([(32, 13), (32, 13)], True),  # between two steps all count
        ([(63, 15), (37, 14)], False),
        ([(63, 15), (37, 15)], True),
        ([(64, 25), (64, 6)], False),  # of those before the last step, three in four
        ([(64, 25), (64, 7)], True),
        ([(64, 25), (64, 0), (64, 11)], False),
        ([(64, 25), (64, 0), (64, 12)], True),
    ],
)
def test_more_than_one_of_ten_answers_overruled_lately_is_a_sign(batches, sign):
    trainer, source = trained(1)
    for images, overruled in batches:
        loss = show(trainer, images, overruled=overruled)
    assert (loss is None) == sign
    assert same(values(trainer), source) == trainer.is_untouched == sign


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize("output", [None, "stream"])
def test_where_labels_come_in_runs_nothing_is_trained(norm, output):
    adapter = plus(classifier(norm=norm), output=output)
    source = affine(adapter)
    for x in in_runs(*[64] * 20):
        adapter(x)
        assert adapter.last.loss is None
    assert adapter.trainer.alike[1] > 0
    assert same(affine(adapter), source)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_when_labels_begin_to_come_in_runs_the_method_drops_what_was_trained(norm):
    """And trains again when enough images have come since the last sign of it, which fades by and by."""
    adapter = plus(classifier(norm=norm), output=None)  # by their neighbours in time no answers are overruled then
    source = affine(adapter)
    run(adapter, fair(*[64] * 7))
    assert steps(adapter) == 2
    run(adapter, in_runs(*[64] * 4))
    assert steps(adapter) == 0
    assert same(affine(adapter), source)
    calm = []
    for x in fair(*[64] * 100, seed=1):
        adapter(x)
        calm.append(int(adapter.trainer.calm))
        if adapter.last.loss is not None:
            break
        assert same(affine(adapter), source)
    last = max(place for place, images in enumerate(calm) if images <= min(calm))
    assert 0 < last < 28
    assert len(calm) == last + 1 + (CALM - min(calm)) // 64
    assert steps(adapter) == 1


def test_the_method_tells_how_clearly_labels_cluster(monkeypatch):
    adapter = plus(classifier(), output=None)
    source = affine(adapter)
    run(adapter, fair(*[64] * 7))
    before = affine(adapter)
    for clear, kept in ((CLEAR, before), (CLEAR + 0.01, source)):
        told = (torch.ones(4), torch.tensor(clear))
        monkeypatch.setattr("grotta.methods.track_record.Counts.constancy", lambda _, told=told: told)
        adapter(fair(64, seed=1)[0])
        assert adapter.last.loss is None
        assert same(affine(adapter), kept)
    assert not same(before, source)


def test_what_the_output_of_the_method_overrules_is_a_sign(monkeypatch):
    adapter = plus(classifier(), output="stream")
    source = affine(adapter)
    run(adapter, fair(*[64] * 7))
    overrules = {"first": 0}
    refine = adapter.output.refine

    def contrary(probs, features, domain):
        output = refine(probs, features, domain)
        rolled = output.probs.clone()
        rolled[: overrules["first"]] = probs[: overrules["first"]].roll(1, 1)
        return Output(rolled, output.zeta, output.lam, output.numbers)

    monkeypatch.setattr(adapter.output, "refine", contrary)
    for answers, dropped, kept in ((0, False, 0), (25, False, 18.75), (7, True, 19.3125)):  # faded to three quarters
        overrules["first"] = answers
        adapter(fair(64, seed=answers)[0])
        assert adapter.record.counts().constancy()[1] == 0
        assert (steps(adapter) == 0) == same(affine(adapter), source) == dropped
        assert adapter.trainer.overruled.tolist() == [kept, 192]


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_only_affine_parameters_of_the_tracked_reading_move(norm):
    model = classifier(norm=norm)
    untouched = copy.deepcopy(model)
    adapter = plus(model)
    own = {name: p.detach().clone() for name, p in adapter.tracked.named_parameters()}
    (x,) = fair(8, seed=9)
    others = {name: getattr(adapter, name)(x)[0] for name in adapter.readings if name != "tracked"}
    run(adapter, fair(*[64] * 7))
    moved = {name for name, p in adapter.tracked.named_parameters() if not torch.equal(p, own[name])}
    assert moved == {"body.1.weight", "body.1.bias"}
    assert same_state(model.state_dict(), untouched.state_dict())
    assert all(p.grad is None for p in model.parameters())
    for name, logits in others.items():
        assert torch.equal(getattr(adapter, name)(x)[0], logits)
    assert adapter.describe().trained == 16


def test_a_network_of_group_norms_is_trained_to_tell_more():
    adapter = plus(classifier(norm="group"))
    assert adapter.readings == ("source", "tracked")
    x = pictures(torch.arange(60) % 5, 5)
    source = adapter.tracked(x)[0].detach()
    losses = []
    for _ in range(34):
        adapter(x)
        losses += [] if adapter.last.loss is None else [float(adapter.last.loss)]
    assert len(losses) > 10
    assert losses == sorted(losses, reverse=True)
    assert torch.equal(adapter.source(x)[0], source)
    assert not torch.equal(adapter.tracked(x)[0], source)


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(("classes", "remembered"), [(10, 21), (20, 12)])
def test_nothing_is_trained_where_answers_are_one_sided(norm, classes, remembered):
    """However many images of the three classes the memory has room for."""
    adapter = plus(classifier(classes, norm))
    source = affine(adapter)
    for x in one_sided(64, 100, 64, 30, 64, 128, 64, 64, classes=classes):
        adapter(x)
        assert adapter.last.loss is None
    assert adapter.last.bank_size == remembered
    assert int(adapter.trainer.calm) > CALM
    assert adapter.trainer.alike[1] > 0
    assert steps(adapter) == 0
    assert same(affine(adapter), source)


def test_what_is_not_trained_goes_back_towards_the_source():
    """Where answers are one-sided, as soon as nothing has spoken of clusters for long enough."""
    trainer = plus(classifier(10)).trainer
    for p in trainer.origin.trained:
        p.data += 0.5
    for place, x in enumerate(one_sided(*[64] * 9), 1):
        trainer.remember(x, said(torch.arange(64) % 3, 10))
        with torch.no_grad():
            assert trainer.step(x) is None
        pulls = max(place - CALM // 64 + 1, 0)
        for p, q in zip(trainer.origin.trained, trainer.origin.values):
            torch.testing.assert_close(p - q, torch.full_like(q, 0.5 * (1 - PULL) ** pulls))
            assert bool((p - q > 0.4).all() and (p - q < 0.499).all()) == (pulls > 0)


def test_few_images_are_no_sample():
    trainer, _ = trained(1)
    before = values(trainer)
    (x,) = fair(FEWEST)
    with torch.no_grad():
        assert trainer.step(x[: FEWEST - 1]) is None
        assert same(values(trainer), before)
        assert trainer.step(x) is not None


def test_a_network_without_affine_parameters_is_just_not_trained():
    model = classifier(norm="bare")
    adapter, untrained = plus(model), plus(model, train=False)
    stream = fair(64, 8, *[64] * 7)
    assert same(run(adapter, stream), run(untrained, stream))
    assert (adapter.trainer, adapter.memory, adapter.optimizer) == (None, None, None)
    assert not torch.equal(adapter.tracked.body[1].running_mean, model[1].running_mean)


def test_it_trains_unless_told_otherwise():
    for adapter in (plus(classifier()), plus(classifier(), preset="paper"), plus(classifier(), train=True)):
        assert adapter.describe().trained == 16
        assert adapter.optimizer.param_groups[0]["lr"] == 4e-3
    assert plus(classifier(), preset="fast", train=True).trainer is not None


@pytest.mark.parametrize("options", [{"train": False}, {"preset": "fast"}, {"preset": "lite"}])
@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.filterwarnings("ignore:method 'grotta")
def test_without_training_there_is_neither_memory_nor_optimizer(norm, options):
    adapter = plus(classifier(norm=norm), **options)
    run(adapter, fair(*[64] * 7))
    assert (adapter.trainer, adapter.memory, adapter.optimizer) == (None, None, None)
    assert adapter.describe().trained == adapter.describe().memory_bytes == 0
    assert adapter.last.loss is adapter.last.bank_size is None
    assert not any(p.requires_grad for p in adapter.parameters())


def test_until_the_first_step_training_makes_no_difference():
    model = classifier()
    trained, untrained = plus(model), plus(model, train=False)
    stream = fair(16, 40, 1, 7, *[64] * 4, 63, 1)
    assert same(run(trained, stream), run(untrained, stream))
    assert steps(trained) == 1
    (x,) = fair(64, seed=1)
    assert not torch.equal(trained(x), untrained(x))


@pytest.mark.filterwarnings("ignore:method 'grotta")
@pytest.mark.parametrize("output", [None, "stream"])
def test_without_batch_norm_the_trained_network_is_not_run_before_its_first_step(output):
    """It is the source until then, and again when all was dropped; its steps are forward passes too."""
    model = classifier(norm="group")
    adapter, untrained = plus(model, output=output), plus(model, train=False, output=output)
    passes = []
    adapter.tracked.register_forward_hook(lambda *_: passes.append(1))
    for x in fair(16, 40, 1, 7, *[64] * 4, 63):
        torch.testing.assert_close(adapter(x), untrained(x))
        assert adapter.last.adapted is False
        assert not passes
    (x,) = fair(1, seed=1)
    torch.testing.assert_close(adapter(x), untrained(x))
    assert adapter.last.adapted is True
    assert len(passes) == 1  # of the step
    (x,) = fair(32, seed=2)
    before = adapter.predict(x)
    assert not torch.allclose(before, untrained.predict(x), atol=1e-4)
    assert len(passes) == 2
    adapter(x)
    assert len(passes) == 3
    adapter.trainer.overruled[0] = 32
    (x,) = fair(32, seed=3)
    adapter(x)
    assert adapter.trainer.is_untouched
    passes.clear()
    (x,) = fair(64, seed=4)
    answers = adapter(x)
    assert not passes
    if output is None:  # the other remembers what it has answered since
        torch.testing.assert_close(answers, untrained(x))


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(
    ("before", "waiting", "since", "in_block", "taken"),
    [
        ((3, 5), 8, 8, 8, 0),
        ((64, 64, 64, 3, 5), 8, 8, 72, 0),
        ((*[64] * 5, 60, 3), 3, 63, 127, 0),  # just before the first step
        ((*[64] * 6,), 0, 0, 0, 1),  # just after it
        ((*[64] * 6, 3, 5), 8, 8, 8, 1),
        ((*[64] * 7, 40, 20), 0, 60, 124, 2),
        ((*[100] * 6, 20), 0, 20, 20, 1),
    ],
)
def test_stopped_and_continued_gives_the_same_bits(norm, before, waiting, since, in_block, taken):
    """In the middle of small batches that wait, of a block, before the first step of training, after it and between."""
    model = classifier(norm=norm)
    adapter, again = plus(model, seed=3), plus(model, seed=3)
    run(adapter, fair(*before))
    assert [int(adapter.trainer.images), int(adapter.trainer.in_block), steps(adapter)] == [since, in_block, taken]
    if norm == "batch":
        assert int(adapter.tracked.body[1].waiting_images) == waiting
    assert same(run(again, fair(*before)), run(plus(model, seed=3), fair(*before)))
    assert_continues_the_same(model, adapter, again, fair(1, 7, 60, 100, *[64] * 5, seed=2))
    assert steps(adapter) > taken


def assert_continues_the_same(model, adapter, again, after):
    """From its state on, another one, a copy and a new one do as ``adapter`` does."""
    state = adapter.state_dict()
    run(again, fair(64, 7, seed=5))  # somewhere else
    again.load_state_dict(state)
    copied, resumed = copy.deepcopy(adapter), plus(model)
    resumed.load_state_dict(state)
    answers, end = run(adapter, after), adapter.state_dict()
    for other in (again, copied, resumed):
        assert same(run(other, after), answers)
        assert same_state(other.state_dict(), end)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_so_it_does_while_it_waits_after_a_sign_of_clusters(norm):
    model = classifier(norm=norm)
    adapter, again = plus(model), plus(model)
    run(adapter, fair(*[64] * 7, 40))
    adapter.trainer.overruled[0] = 26
    state = adapter.state_dict()  # with a sign that has not been acted on
    assert state["network.trainer.overruled"].tolist() == [26, 192 + 40]
    again.load_state_dict(state)
    for one in (adapter, again):
        run(one, fair(24, 10, seed=1))
        assert one.trainer.is_untouched
        assert int(one.trainer.calm) == -CALM
    assert same_state(adapter.state_dict(), again.state_dict())
    assert_continues_the_same(model, adapter, again, fair(54, *[64] * 9, seed=2))
    assert steps(adapter) > 0


def test_a_new_beginning_forgets_the_training():
    adapter = plus(classifier())
    fresh = adapter.state_dict()
    stream = fair(*[64] * 7, 5)
    first = run(adapter, stream)
    assert steps(adapter) == 2
    adapter.reset()
    assert same_state(adapter.state_dict(), fresh)
    assert same(run(adapter, stream), first)


def test_images_of_another_size_start_the_memory_over():
    adapter = plus(classifier())
    run(adapter, fair(*[64] * 6, 60))
    before = affine(adapter)
    with pytest.warns(UserWarning, match=r"images have changed from \(3, 12, 12\) to \(3, 14, 14\)"):
        adapter(F.pad(fair(8)[0], (1, 1, 1, 1)))
    assert adapter.last.bank_size == 8
    assert adapter.last.loss is None  # 68 images have come, of which too few are left
    assert int(adapter.trainer.images) == 0
    assert same(affine(adapter), before)


@pytest.mark.parametrize("before", [(*[64] * 5, 3), (*[64] * 6, 3)])
def test_a_step_that_fails_leaves_nothing_behind(before, monkeypatch):
    """The first one, and the second."""
    adapter, other = plus(classifier()), plus(classifier())
    run(adapter, fair(*before))
    state = adapter.state_dict()
    (x,) = fair(64, seed=1)
    with monkeypatch.context() as patch:
        patch.setattr("grotta.methods.fair_training.information_loss", lambda logits: logits.sum() * float("nan"))
        with pytest.raises(FloatingPointError):
            adapter(x)
    assert same_state(adapter.state_dict(), state)
    run(other, fair(*before))
    assert torch.equal(adapter(x), other(x))
    assert adapter.last.loss is not None
    assert same_state(adapter.state_dict(), other.state_dict())


class Undifferentiable(nn.Module):
    """A model that keeps no graph, as some deployed ones do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    @torch.no_grad()
    def forward(self, x):
        return self.model(x)


def test_a_model_that_cannot_be_trained_is_read_on():
    """No answer is lost to the first step, and there is no second try."""
    model = Undifferentiable(classifier()).eval()
    adapter, untrained = plus(model), plus(model, train=False)
    stream = fair(*[64] * 10)
    with pytest.warns(UserWarning, match="the model cannot be trained") as caught:
        answers = run(adapter, stream)
    assert len(caught) == 1
    assert same(answers, run(untrained, stream))
    assert adapter.trainer.is_untouched
    again = plus(model)
    again.load_state_dict(adapter.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(run(again, fair(64, 64, seed=1)), run(untrained, fair(64, 64, seed=1)))


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_where_nothing_can_be_seen_of_clusters_nothing_is_trained(norm):
    """One expert is asked about single images: no two answers of the others are neighbours in time."""
    adapter = plus(classifier(norm=norm), experts=1, probe_every=4, output=None)
    for x in in_runs(*[1] * 700):
        adapter(x)
        assert adapter.last.loss is None
