"""What the gate is for: single frames answered beside a learner that never rests, with and without it.

``python -m benchmarks.serve.gate`` prints percentiles in ms, in one process and without HTTP. GRoTTA with its preset
``fast`` on a CIFAR ResNet-20.
"""

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import torch

import grotta
from benchmarks.serve.harness import pictures
from grotta.serve.run import SWITCH_SECONDS
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.pair import Pair

PAUSE = 0.03  # seconds between two answers


def percentiles(pair: Pair, gate: Gate | None, seconds: float) -> list[float]:
    """p50, p90 and p99 of the time that an answer takes, in ms."""
    frame, took, end = torch.from_numpy(pictures(1)), [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(PAUSE)
        began = time.perf_counter()
        with gate or contextlib.nullcontext():
            pair.answer(frame)
        took.append(time.perf_counter() - began)
    return [round(1000 * float(value), 1) for value in np.percentile(took, [50, 90, 99])]


def compare(network: torch.nn.Module, *, gated: bool, seconds: float) -> dict[str, Any]:
    gate, frame = Gate(), torch.from_numpy(pictures(1))
    pair = Pair(grotta.create("grotta", network, preset="fast"), gate)
    for _ in range(3):
        pair.learn(frame)
        pair.answer(frame)
    stop = threading.Event()

    def learn() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        while not stop.is_set():
            gate.begin_step()
            pair.learn(frame)

    used = gate if gated else None
    alone = percentiles(pair, used, seconds)
    learner = threading.Thread(target=learn)
    learner.start()
    beside = percentiles(pair, used, seconds)
    stop.set()
    learner.join()
    return {"gated": gated, "alone": alone, "beside_a_learner": beside}


def main() -> None:
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_SECONDS)
    network = grotta.models.create_model("resnet20", num_classes=10)
    rounds = [compare(network, gated=gated, seconds=4) for _ in range(2) for gated in (False, True)]
    json.dump({"percentiles": [50, 90, 99], "rounds": rounds}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
