"""Training on a fair sample, by itself and in GRoTTA+."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grotta.checks import run, same, same_state
from grotta.methods import create
from grotta.methods.fair_training import FEWEST, PULL, REMEMBERED, SAMPLES

NORMS = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(2, channels),
    "bare": lambda channels: nn.BatchNorm2d(channels, affine=False),
}


def plus(model, **options):
    """GRoTTA+ that trains, unless the options say otherwise."""
    return create("grotta+", model, **{"train": True, **options})


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
    """Two of the classes only."""
    return pictures(torch.arange(sum(sizes)) % 2, classes).split(sizes)


def said(labels, classes=5):
    """Probabilities of which these are the answers."""
    return F.one_hot(torch.as_tensor(labels), classes).double().softmax(1)


def affine(adapter):
    """Copies of what is trained."""
    return [p.detach().clone() for group in adapter.optimizer.param_groups for p in group["params"]]


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


@pytest.mark.parametrize(("size", "expected"), [(1, [64, 128]), (16, [64, 128]), (64, [64, 128]), (100, [100, 200])])
def test_there_is_a_step_after_every_64_images_whatever_the_batches(size, expected):
    adapter = plus(classifier())
    at = []
    for place, x in enumerate(fair(*[size] * (-(-128 // size)))):
        before = steps(adapter)
        adapter(x)
        assert steps(adapter) - before == (adapter.last.loss is not None)
        if adapter.last.loss is not None:
            at.append((place + 1) * size)
    assert at == expected


def preserved(x, name, w, eps=1e-5):
    """Batch normalisation by the running statistics, with the gradient of training mode."""
    mean, var = (v[:, None, None] for v in (x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)))
    spread = (var + eps).sqrt()
    x = (x - mean) / spread * spread.detach() + mean.detach()
    scale, mean_g, var_g, shift = (
        w[f"{name}.{part}"][:, None, None] for part in ("weight", "running_mean", "running_var", "bias")
    )
    return (x - mean_g) / (var_g + eps).sqrt() * scale + shift


def test_a_step_is_one_of_adam_as_far_as_answers_are_even_and_a_little_way_back(by_hand):
    """Mutual information, evenness, Adam and the way back, all by hand."""
    net = by_hand.net()
    adapter = plus(net, lr=0.01)
    weights, adam = by_hand.leaf_weights(net), by_hand.Adam(lr=0.01)
    origin = {name: weights[name].detach().clone() for name in by_hand.affine}
    batch, counts = [36, 7, 7, 7, 7], [0.0] * 5
    labels = torch.repeat_interleave(torch.arange(5), torch.tensor(batch))
    for step in range(3):
        x = by_hand.images(20, seed=step)
        adapter.trainer.remember(by_hand.images(64, seed=step), said(labels))
        assert adapter.trainer.is_due
        with torch.no_grad():
            loss = adapter.trainer.step(x)
        counts = [REMEMBERED * old + new for old, new in zip(counts, batch)]
        squares = sum(64 * REMEMBERED ** (2 * age) for age in range(step + 1))  # pairs of an answer with itself
        alike = (sum(n * n for n in counts) - squares) / (sum(counts) ** 2 - squares)
        share = (2.0 - 5 * alike) / 0.5
        assert 0.3 < share < 0.7
        probs = by_hand.forward(weights, x, preserved)[0].softmax(1)
        expected = (probs * (probs.mean(0) / probs).log()).sum(1).mean()
        assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
        before = {name: weights[name].detach() for name in by_hand.affine}
        adam.step(weights, expected, by_hand.affine)
        for name in by_hand.affine:
            moved = before[name] + share * (weights[name].detach() - before[name])
            weights[name] = (moved + PULL * (origin[name] - moved)).requires_grad_()
        by_hand.assert_same(adapter.tracked, weights, by_hand.affine)
        assert not adapter.trainer.is_due


def test_the_step_is_on_what_is_remembered_with_the_statistics_of_now():
    model = classifier()
    adapter, untrained = plus(model), plus(model, train=False)
    (x,) = fair(100)
    adapter(x)
    untrained(x)  # the same statistics, the source's affine parameters
    probs = untrained.tracked(adapter.memory.contents()[0])[0].double().softmax(1)
    expected = (probs * (probs.mean(0) / probs).log()).sum(1).mean()
    assert float(adapter.last.loss) == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_only_affine_parameters_of_the_tracked_reading_move(norm):
    model = classifier(norm=norm)
    untouched = copy.deepcopy(model)
    adapter = plus(model)
    own = {name: p.detach().clone() for name, p in adapter.tracked.named_parameters()}
    (x,) = fair(8, seed=9)
    others = {name: getattr(adapter, name)(x)[0] for name in adapter.readings if name != "tracked"}
    run(adapter, fair(64, 64))
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
    for _ in range(30):
        adapter(x)
        losses += [] if adapter.last.loss is None else [float(adapter.last.loss)]
    assert len(losses) > 10
    assert losses == sorted(losses, reverse=True)
    assert torch.equal(adapter.source(x)[0], source)
    assert not torch.equal(adapter.tracked(x)[0], source)


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(("classes", "remembered"), [(5, 26), (10, 14)])
def test_nothing_is_trained_where_answers_are_one_sided(norm, classes, remembered):
    """However many images of the two classes the memory has room for."""
    adapter = plus(classifier(classes, norm))
    source = affine(adapter)
    for x in one_sided(64, 100, 64, 30, 64, classes=classes):
        adapter(x)
        assert adapter.last.loss is None
    assert adapter.last.bank_size == remembered
    assert steps(adapter) == 0
    assert same(affine(adapter), source)


def test_what_is_not_trained_goes_back_towards_the_source():
    adapter = plus(classifier(10))
    source = affine(adapter)
    for group in adapter.optimizer.param_groups:
        for p in group["params"]:
            p.data += 0.5
    for place, x in enumerate(one_sided(64, 64, 64), 1):
        adapter(x)
        for p, q in zip(affine(adapter), source):
            torch.testing.assert_close(p - q, torch.full_like(q, 0.5 * (1 - PULL) ** place))
            assert bool((p - q > 0.4).all() and (p - q < 0.5).all())


def test_few_images_are_no_sample():
    adapter = plus(classifier())
    (x,) = fair(64)
    adapter.trainer.remember(x, said(torch.arange(64) % 5))
    source = affine(adapter)
    with torch.no_grad():
        assert adapter.trainer.step(x[: FEWEST - 1]) is None
        assert same(affine(adapter), source)
        assert adapter.trainer.step(x[:FEWEST]) is not None


def test_a_network_without_affine_parameters_is_just_not_trained():
    model = classifier(norm="bare")
    adapter, untrained = plus(model), plus(model, train=False)
    assert same(run(adapter, fair(64, 8, 64)), run(untrained, fair(64, 8, 64)))
    assert (adapter.trainer, adapter.memory, adapter.optimizer) == (None, None, None)
    assert not torch.equal(adapter.tracked.body[1].running_mean, model[1].running_mean)


@pytest.mark.parametrize("options", [{}, {"preset": "fast"}, {"preset": "lite"}])
def test_without_training_there_is_neither_memory_nor_optimizer(options):
    adapter = create("grotta+", classifier(), **options)
    run(adapter, fair(64, 64))
    assert (adapter.trainer, adapter.memory, adapter.optimizer) == (None, None, None)
    assert adapter.describe().trained == adapter.describe().memory_bytes == 0
    assert adapter.last.loss is adapter.last.bank_size is None
    assert not any(p.requires_grad for p in adapter.parameters())


def test_until_the_first_step_training_makes_no_difference():
    model = classifier()
    trained, untrained = plus(model), plus(model, train=False)
    assert same(run(trained, fair(16, 40, 1, 7)), run(untrained, fair(16, 40, 1, 7)))
    (x,) = fair(64, seed=1)
    assert not torch.equal(trained(x), untrained(x))


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(
    ("before", "waiting", "since"),
    [((3, 5), 8, 8), ((64, 64, 3, 5), 8, 8), ((60, 3), 3, 63), ((64,), 0, 0), ((100, 20), 0, 20)],
)
def test_stopped_and_continued_gives_the_same_bits(norm, before, waiting, since):
    """In the middle of small batches that wait, before the first step of training, after it and between two."""
    model = classifier(norm=norm)
    adapter, again = plus(model, seed=3), plus(model, seed=3)
    run(adapter, fair(*before))
    assert int(adapter.trainer.images) == since
    assert (steps(adapter) > 0) == (sum(before) >= SAMPLES)
    if norm == "batch":
        assert int(adapter.tracked.body[1].waiting_images) == waiting
    assert same(run(again, fair(*before)), run(plus(model, seed=3), fair(*before)))
    state = adapter.state_dict()
    run(again, fair(64, 7, seed=5))  # somewhere else
    again.load_state_dict(state)
    copied, resumed = copy.deepcopy(adapter), plus(model)
    resumed.load_state_dict(state)
    after = fair(1, 7, 60, 100, seed=2)
    answers, end = run(adapter, after), adapter.state_dict()
    for other in (again, copied, resumed):
        assert same(run(other, after), answers)
        assert same_state(other.state_dict(), end)


def test_a_new_beginning_forgets_the_training():
    adapter = plus(classifier())
    fresh = adapter.state_dict()
    first = run(adapter, fair(64, 64, 5))
    adapter.reset()
    assert same_state(adapter.state_dict(), fresh)
    assert same(run(adapter, fair(64, 64, 5)), first)


def test_images_of_another_size_start_the_memory_over():
    adapter = plus(classifier())
    run(adapter, fair(60))
    with pytest.warns(UserWarning, match=r"images have changed from \(3, 12, 12\) to \(3, 14, 14\)"):
        adapter(F.pad(fair(8)[0], (1, 1, 1, 1)))
    assert adapter.last.bank_size == 8
    assert adapter.last.loss is None  # 68 images have come, of which too few are left


def test_a_step_that_fails_leaves_nothing_behind(monkeypatch):
    adapter = plus(classifier())
    run(adapter, fair(64, 3))
    state = adapter.state_dict()
    (x,) = fair(64, seed=1)
    with monkeypatch.context() as patch:
        patch.setattr("grotta.methods.fair_training.information_loss", lambda logits: logits.sum() * float("nan"))
        with pytest.raises(FloatingPointError):
            adapter(x)
    assert same_state(adapter.state_dict(), state)
