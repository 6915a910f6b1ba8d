"""Timing by turns: every contender runs once a round, so that what disturbs the machine disturbs them all."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

Contenders = Mapping[str, Callable[[], object]]
Times = dict[str, list[float]]

# A sample shorter than this says more of the clock than of the contender, so it is made of several calls.
_SHORTEST = 0.01
_SETTLING = 5  # calls that do not count, of those contenders: after a pass of a network, caches hold nothing of theirs


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of what was measured in several rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def __mul__(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor)


def clock() -> float:
    """CPU time of the process in one thread, which other programs disturb least; wall time in several."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def take_turns(contenders: Contenders, rounds: int, warmup: int = 1) -> Times:
    """Seconds a call of each contender in each round, after ``warmup`` calls that do not count."""
    calls: dict[str, int] = {}
    for name, run in contenders.items():
        for _ in range(warmup):
            run()
        start = clock()
        run()
        calls[name] = math.ceil(_SHORTEST / max(clock() - start, 1e-7))
    times: Times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            for _ in range(min(calls[name] - 1, _SETTLING)):
                run()
            start = clock()
            for _ in range(calls[name]):
                run()
            times[name].append((clock() - start) / calls[name])
    return times


def ratio(times: Times, name: str, unit: str) -> Spread:
    """How many times ``unit`` the contender ``name`` takes: the ratio of each round, and their spread."""
    return Spread.of([a / b for a, b in zip(times[name], times[unit], strict=True)])


def faster(times: Times, *names: str) -> str:
    """The contender among ``names`` with the smallest median."""
    return min(names, key=lambda name: statistics.median(times[name]))
