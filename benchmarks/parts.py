"""Each part of a step alone, against the plain composition it replaces and against a pass of a network."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import torch
from torch import Tensor, nn

from benchmarks import reference_augment, reference_refine, reference_update
from benchmarks.reference_bank import ReferenceBank
from benchmarks.reference_norm import ReferenceGpreRBN
from benchmarks.report import Row
from benchmarks.subjects import images, resnet20, resnet50
from benchmarks.timing import Spread, Times, faster, ratio, take_turns
from grotta import augment, outputs
from grotta import functional as GF
from grotta.memory import CategoryBalancedBank
from grotta.methods.optimise import make_optimizer
from grotta.methods.teacher import ema_, trained_affine
from grotta.nn import GpreRBN2d, convert_norm, gpre_rbn
from grotta.outputs.base import Domain

FASTER = "times as fast as the composition"


def measure(rounds: int, big: bool) -> Iterator[Row]:
    yield from norm_layer(rounds)
    yield from augmentation(rounds)
    yield from bank(rounds)
    yield from refinement(rounds, big)
    yield from stream_output(rounds)
    yield from update(rounds)


def norm_layer(rounds: int) -> Iterator[Row]:
    """Forward and backward with moving statistics, on feature maps of the two networks."""
    for shape, at_least in (((64, 16, 32, 32), 2.0), ((64, 64, 8, 8), None), ((16, 256, 56, 56), 2.0)):
        plain, last = torch.randn(shape), torch.randn(shape).contiguous(memory_format=torch.channels_last)
        ours = GpreRBN2d.from_bn(nn.BatchNorm2d(shape[1]))
        ours.tracking = True
        contenders = {
            "ours": _there_and_back(ours, last),
            "theirs": _there_and_back(ReferenceGpreRBN(shape[1]), plain),
            "theirs, channels last": _there_and_back(ReferenceGpreRBN(shape[1]), last),
        }
        times = take_turns(contenders, rounds)
        theirs = faster(times, "theirs", "theirs, channels last")
        yield Row("Parts", f"norm layer {shape}", ratio(times, theirs, "ours"), FASTER, at_least=at_least)


def _there_and_back(layer: nn.Module, x: Tensor) -> Callable[[], object]:
    leaf, upstream = x.clone().requires_grad_(), torch.randn_like(x)

    def run() -> None:
        leaf.grad = None
        layer.zero_grad()
        layer(leaf).backward(upstream)

    return run


def augmentation(rounds: int) -> Iterator[Row]:
    """The strong view, every round with other parameters; the composition in its faster memory format."""
    for size, batch, at_least in ((32, 64, None), (224, 16, 6.0)):
        plain = images(batch, size).float() / 255
        last = plain.contiguous(memory_format=torch.channels_last)
        runs = {
            "ours": partial(augment.apply, last),
            "theirs": partial(_composed_view, plain),
            "theirs, channels last": partial(_composed_view, last),
        }
        times: Times = {name: [] for name in runs}
        for seed in range(rounds + 1):
            params = augment.draw(torch.Generator().manual_seed(seed), size, size)
            once = take_turns({name: partial(run, params=params) for name, run in runs.items()}, rounds=1, warmup=0)
            for name, (seconds,) in once.items():
                times[name] += [seconds] if seed else []  # the first warms up
        theirs = faster(times, "theirs", "theirs, channels last")
        yield Row(
            "Parts", f"strong view, {batch} of {size} px", ratio(times, theirs, "ours"), FASTER, at_least=at_least
        )


def _composed_view(x: Tensor, params: augment.StrongParams) -> Tensor:
    """The composition, its noise drawn as part of it like ours."""
    return reference_augment.strong_view(x, params, params.noise * torch.randn(x.shape))


def bank(rounds: int) -> Iterator[Row]:
    """Putting a batch of 64 into a full bank of 1024, and drawing one."""
    subject = resnet20()
    batch, labels = subject.batches[0], torch.randint(10, (64,), generator=torch.Generator().manual_seed(0))
    ours, theirs = CategoryBalancedBank(1024, 10), ReferenceBank(1024, 10)
    generator, chooser = torch.Generator().manual_seed(0), random.Random(0)
    for each in (ours, theirs):
        for _ in range(40):
            each.add(batch, labels)
    times = take_turns(
        {
            "forward": subject.forward(torch.channels_last),
            "add": lambda: ours.add(batch, labels),
            "their add": lambda: theirs.add(batch, labels),
            "sample": lambda: ours.sample(64, generator),
            "their sample": lambda: theirs.sample(64, chooser),
        },
        rounds,
    )
    unit = "% of a ResNet-20 forward"
    yield Row("Parts", "bank insertion of 64", ratio(times, "add", "forward") * 100, unit, at_most=1.0)
    yield Row("Parts", "bank insertion of 64", ratio(times, "their add", "add"), FASTER)
    yield Row("Parts", "bank draw of 64", ratio(times, "sample", "forward") * 100, unit)
    yield Row("Parts", "bank draw of 64", ratio(times, "their sample", "sample"), FASTER)


def refinement(rounds: int, big: bool) -> Iterator[Row]:
    """B 64, C 1000, d 2048. Without ``big`` the pass it is compared with has a quarter of the batch: a harder bar."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(64, 2048, generator=generator).relu()
    probs = (5 * torch.randn(64, 1000, generator=generator)).softmax(1)
    subject = resnet50(64 if big else 16)
    times = take_turns(
        {
            "forward": subject.forward(torch.channels_last),
            "ours": lambda: GF.bias_guided_refine(probs, features),
            "theirs": lambda: reference_refine.refine(probs, features),
        },
        rounds,
    )
    unit = f"% of a ResNet-50 forward of {subject.batch_size}"
    yield Row("Parts", "refinement, B 64, C 1000, d 2048", ratio(times, "ours", "forward") * 100, unit, at_most=3.0)
    yield Row("Parts", "refinement, B 64, C 1000, d 2048", ratio(times, "theirs", "ours"), FASTER)


def stream_output(rounds: int) -> Iterator[Row]:
    """Reading a batch of ten classes in the light of its neighbours in time, against a pass of the ResNet-20.

    By itself, and where it is told which domain a batch comes from, as by GRoTTA+; and what it adds to a pass that it
    comes right after, when caches are full of images.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (32, 2), generator=generator).repeat_interleave(32, 1)
    logits = torch.randn(32, 64, 10, generator=generator) + 3 * nn.functional.one_hot(labels, 10)
    batches = cycle(logits.softmax(2))
    same = Domain(torch.tensor(0), begins=torch.tensor(False), returns=torch.tensor(False))
    alone, told = outputs.create("stream", 10), outputs.create("stream", 10)

    def reader(stream: outputs.OutputAdaptation, **domain: Domain) -> Callable[[], None]:
        def read() -> None:
            with torch.inference_mode():
                batch = next(batches)
                stream.observe(batch, batch, stream.refine(batch, batch, **domain))

        return read

    forward, after = resnet20().forward(torch.channels_last), reader(outputs.create("stream", 10), domain=same)

    def both() -> None:
        forward()
        after()

    contenders = {
        "forward": forward,
        "stream output": reader(alone),
        "stream output, told domains": reader(told, domain=same),
        "both": both,
    }
    measured = take_turns(contenders, rounds)
    for name in ("stream output", "stream output, told domains"):
        share = ratio(measured, name, "forward") * 100
        yield Row("Parts", f"{name}, B 64, C 10", share, "% of a ResNet-20 forward", at_most=2.0)
    added = Spread.of([100 * (a / b - 1) for a, b in zip(measured["both"], measured["forward"], strict=True)])
    yield Row("Parts", "stream output, right after a pass", added, "% of a ResNet-20 forward")


def update(rounds: int) -> Iterator[Row]:
    """One step of Adam and of the teacher, on the affine parameters of ResNet-20."""
    subject = resnet20()
    networks = [convert_norm(subject.model, gpre_rbn()) for _ in range(4)]
    parameters = [list(trained_affine(network).values()) for network in networks]
    for p in (*parameters[0], *parameters[1]):
        p.grad = torch.randn_like(p)
    adam = make_optimizer("adam", parameters[0], lr=1e-3)
    their_adam = reference_update.ReferenceAdam(parameters[1], lr=1e-3)
    times = take_turns(
        {
            "adam": adam.step,
            "their adam": their_adam.step,
            "ema": lambda: ema_(parameters[2], parameters[0], 0.001),
            "their ema": lambda: reference_update.ema(parameters[3], parameters[0], 0.001),
        },
        rounds,
    )
    yield Row("Parts", "optimizer, ResNet-20", ratio(times, "their adam", "adam"), FASTER)
    yield Row("Parts", "teacher, ResNet-20", ratio(times, "their ema", "ema"), FASTER)
