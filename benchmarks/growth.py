"""How the cost of a GRoTTA step grows with the batch, the classes, the bank and the stream."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.report import Row
from benchmarks.subjects import resnet20, small
from benchmarks.timing import Contenders, Spread, clock, ratio, take_turns

BATCHES = (1, 4, 16, 64, 256, 512)
CLASSES = (10, 100, 1000)
CAPACITIES = (64, 1024, 16384)


def measure(rounds: int) -> Iterator[Row]:
    yield from with_batch(rounds)
    yield from with_classes(rounds)
    yield from with_bank(rounds)
    yield from with_stream(rounds)


def with_batch(rounds: int) -> Iterator[Row]:
    """Per image, with a bank batch of the same size; and in forwards of the same batch."""
    steps: Contenders = {}
    for size in BATCHES:
        subject = resnet20(size)
        steps[str(size)] = subject.step("grotta", bank_batch=size)[1]
        steps[f"forward {size}"] = subject.forward(torch.channels_last)
    times = take_turns(steps, max(3, rounds // 4), warmup=2)
    for size in BATCHES:
        yield Row("Growth with B", f"B {size}, an image", ratio(times, str(size), "64") * (64 / size), "of one at B 64")
    for size in BATCHES:
        yield Row("Growth with B", f"B {size}, a step", ratio(times, str(size), f"forward {size}"), "source forwards")


def with_classes(rounds: int) -> Iterator[Row]:
    """Against ten classes; beside it what a plain forward grows by."""
    steps: Contenders = {}
    for classes in CLASSES:
        subject = resnet20(num_classes=classes)
        steps[str(classes)] = subject.step("grotta")[1]
        steps[f"forward {classes}"] = subject.forward(torch.channels_last)
    times = take_turns(steps, max(3, rounds // 2), warmup=3)
    for classes in CLASSES[1:]:
        step, forward = ratio(times, str(classes), "10"), ratio(times, f"forward {classes}", "forward 10")
        yield Row("Growth with C", f"C {classes}, a step", step, "of one at C 10", at_most=1.1)
        yield Row("Growth with C", f"C {classes}, a forward", forward, "of one at C 10")


def with_bank(rounds: int) -> Iterator[Row]:
    """At a bank batch of 64, the bank full."""
    subject = resnet20()
    steps: Contenders = {}
    for capacity in CAPACITIES:
        adapter, steps[str(capacity)] = subject.step("grotta", capacity=capacity)
        labels = torch.arange(64) % 10
        for number in range(capacity // 64 + 1):
            adapter.memory.add(subject.batches[number % 4], labels)
    times = take_turns(steps, max(3, rounds // 2), warmup=2)
    for capacity in CAPACITIES:
        value = ratio(times, str(capacity), "1024")
        yield Row("Growth with the bank", f"capacity {capacity}", value, "of a step at 1024", at_most=1.1)


def with_stream(rounds: int) -> Iterator[Row]:
    """The last tenth of a stream against its second tenth, on a small network."""
    _, step = small(16).step("grotta", bank_batch=16)
    times = []
    for _ in range(100 * max(3, rounds // 4)):
        start = clock()
        step()
        times.append(clock() - start)
    tenth = len(times) // 10
    ratios = [late / early for early, late in zip(times[tenth : 2 * tenth], times[-tenth:])]
    yield Row("Growth with the stream", f"after {len(times)} steps", Spread.of(ratios), "of an early step", at_most=1.1)
