"""What a step of each method costs, in passes of the source model, and what of it is not spent inside networks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

import grotta
from benchmarks.report import Row
from benchmarks.subjects import Subject, resnet20, resnet50
from benchmarks.timing import Spread, clock, faster, ratio, take_turns
from grotta.nn import Network

UNIT = "source forwards"
# Passes over 32 augmented copies of the batch: tens of units, measured on the small network alone.
EXPENSIVE = {"cotta"}
BARS = {
    "grotta": 11.5,
    "grotta fast": 4.0,
    "eata": 3.0,
    "sar": 5.5,
    "deyo": 4.5,
    "roid": 6.0,
    "grotta+": 10.5,
    "grotta+ lite": 1.4,
}


def measure(rounds: int, big: bool, compiled: bool) -> Iterator[Row]:
    small = resnet20()
    yield from steps(small, rounds, grotta.list_methods(), BARS)
    yield from outside(small, rounds, at_most=12.0)
    if compiled:
        yield from steps(small, rounds, ["grotta compiled"], {"grotta compiled": 8.8})
    for batch_size in (16, 64) if big else ():
        affordable = [name for name in grotta.list_methods() if name not in EXPENSIVE]
        subject, few = resnet50(batch_size), max(3, rounds // 4)
        bars = {"grotta": 9.5, "grotta fast": 4.0} if batch_size == 16 else {}
        yield from steps(subject, few, affordable, bars, warmup=1)
        yield from outside(subject, few, at_most=5.0)


def steps(subject: Subject, rounds: int, methods: list[str], bars: dict[str, float], warmup: int = 3) -> Iterator[Row]:
    """Every method's step in units of the faster of the two plain forwards."""
    contenders: dict[str, Callable[[], object]] = {
        "source forward, channels last": subject.forward(torch.channels_last),
        "source forward, contiguous": subject.forward(torch.contiguous_format),
    }
    lengths = dict.fromkeys(contenders, 1)
    for name in _with_presets(methods):
        method, options = _method(name, subject.batch_size)
        contenders[name], lengths[name] = subject.period(method, **options)
    times = take_turns(contenders, rounds, warmup)
    unit = faster(times, *list(contenders)[:2])
    for name, length in lengths.items():
        cost = ratio(times, name, unit) * (1 / length)
        yield Row(f"A step on {subject.name}", name, cost, UNIT, at_most=bars.get(name))


def outside(subject: Subject, rounds: int, at_most: float) -> Iterator[Row]:
    """The share of a GRoTTA step spent outside of network passes and their backward."""
    adapter, step = subject.step("grotta", bank_batch=subject.batch_size)
    for _ in range(3):
        step()
    shares = []
    for _ in range(rounds):
        with passes(adapter) as inside:
            start = clock()
            step()
            shares.append(100 * (1 - sum(inside) / (clock() - start)))
    yield Row(f"A step on {subject.name}", "grotta, outside of passes", Spread.of(shares), "% of it", at_most=at_most)


@contextlib.contextmanager
def passes(adapter: grotta.Adapter) -> Iterator[list[float]]:
    """The seconds of every forward of the adapter's networks and of every backward, as they happen."""
    inside: list[float] = []
    starts: list[float] = []
    backward = torch.autograd.backward

    def timed_backward(*args: Any, **kwargs: Any) -> None:
        start = clock()
        backward(*args, **kwargs)
        inside.append(clock() - start)

    with contextlib.ExitStack() as stack:
        for network in (module for module in adapter.modules() if isinstance(module, Network)):
            before = network.register_forward_pre_hook(lambda *_: starts.append(clock()))
            after = network.register_forward_hook(lambda *_: inside.append(clock() - starts.pop()))
            stack.callback(before.remove)
            stack.callback(after.remove)
        stack.enter_context(mock.patch("torch.autograd.backward", timed_backward))
        yield inside


def _with_presets(methods: list[str]) -> Iterator[str]:
    for name in methods:
        yield name
        if name == "grotta":
            yield "grotta fast"
        if name == "grotta+":
            yield from ("grotta+ untrained", "grotta+ fast", "grotta+ lite")


def _method(name: str, batch_size: int) -> tuple[str, dict[str, Any]]:
    """Method and options of ``name``, which may end in a preset or ``compiled``.

    GRoTTA's presets are for batches of 64: for others, what it draws from its bank is scaled with them.
    """
    method, _, variant = name.partition(" ")
    options: dict[str, Any] = {"compile": True} if variant == "compiled" else {}
    if method == "grotta+" and variant:
        options |= {"train": False} if variant == "untrained" else {"preset": variant}
    if method == "grotta":
        preset = grotta.GRoTTA.presets["fast" if variant == "fast" else "paper"]
        options |= preset | {"bank_batch": max(1, preset.get("bank_batch", 64) * batch_size // 64)}
    return method, options
