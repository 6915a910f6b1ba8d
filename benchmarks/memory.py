"""Peak memory of a step, each method in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks import subjects
from benchmarks.report import Row
from benchmarks.timing import Spread
from grotta.bench.process import forget_peak_memory, peak_memory_mb

METHODS = ("source", "tent", "grotta")
CASES = {"ResNet-20, B 64": ("resnet20", 64), "ResNet-50, B 16": ("resnet50", 16)}


def measure(rounds: int, big: bool) -> Iterator[Row]:
    for title, (network, batch_size) in CASES.items():
        if big or network != "resnet50":
            yield from case(title, network, batch_size, min(rounds, 3))


def case(title: str, network: str, batch_size: int, rounds: int) -> Iterator[Row]:
    """The memory that a step adds to the process at its peak, without the bank's images."""
    peaks = {method: [_in_a_new_process(network, batch_size, method) for _ in range(rounds)] for method in METHODS}
    group = f"Peak memory of a step on {title}"
    for method, samples in peaks.items():
        yield Row(group, method, Spread.of([s["peak"] / s["model"] for s in samples]), "source models")
    ratios = [a["peak"] / b["peak"] for a, b in zip(peaks["grotta"], peaks["tent"])]
    yield Row(group, "grotta", Spread.of(ratios), "tent steps", at_most=1.6)


def _in_a_new_process(network: str, batch_size: int, method: str) -> dict[str, float]:
    # Without these two, glibc gives large blocks back at once and the peak is that of the live tensors.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-m", "benchmarks.memory", network, str(batch_size), method]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=environment)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def _measure_here(network: str, batch_size: int, method: str) -> dict[str, float]:
    torch.set_num_threads(1)
    subject = {"resnet20": subjects.resnet20, "resnet50": subjects.resnet50}[network](batch_size)
    options = {"capacity": batch_size, "bank_batch": batch_size} if method == "grotta" else {}
    subject.forward(torch.channels_last)()  # the libraries load what they need
    forget_peak_memory()
    before = peak_memory_mb()
    adapter, step = subject.step(method, **options)
    for _ in range(3):
        step()
    peak = peak_memory_mb() - before
    bank = getattr(adapter.memory, "nbytes", 0)
    model = sum(t.nbytes for t in (*subject.model.parameters(), *subject.model.buffers()))
    return {"peak": peak - bank / 1e6, "model": model / 1e6}


if __name__ == "__main__":
    print(json.dumps(_measure_here(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
