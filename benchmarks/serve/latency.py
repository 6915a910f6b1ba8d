"""Answer latency with and without adaptation at the same load, and throughput against a bare loop.

``python -m benchmarks.serve.latency`` prints one JSON object. CIFAR ResNet-20; speed does not depend on its weights.
All servers run at once and are loaded by turns, a few seconds each, so that what else the machine does hits them alike.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import grotta
from benchmarks.serve.client import Load, as_fast_as_possible, at_rate, raw_request
from benchmarks.serve.harness import Server, pictures, serving

STREAMS = 8
FLAGS = {
    "source": ("--method", "source"),
    "default": (),  # grotta+, preset lite
    "fast": ("--preset", "fast"),
    "full": ("--preset", "paper"),
}


def weights(folder: Path) -> str:
    file = folder / "resnet20.safetensors"
    save_file(grotta.models.create_model("resnet20", num_classes=10).state_dict(), file)
    return f"m=resnet20@{file}"


def metrics(server: Server) -> dict[str, float]:
    """Values of the served model's metrics that have no other label."""
    lines = [line for line in server.client.get("/metrics").text.splitlines() if '{model="m"} ' in line]
    return {line.split("{")[0]: float(line.split(" ")[-1]) for line in lines}


def until_learned(server: Server, seconds: float = 30) -> None:
    """Wait until nothing is queued: what one server still learns would disturb the next one's turn."""
    deadline = time.monotonic() + seconds
    while metrics(server).get("grotta_adaptation_queue", 0) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.3)


def frames(size: int = 1) -> list[bytes]:
    return [raw_request(pictures(size, i), f"s{i}") for i in range(STREAMS)]


def by_turns(servers: dict[str, Server], rate: float, seconds: float, turns: int) -> dict[str, dict[str, Any]]:
    """Load each server at ``rate`` for ``seconds``, ``turns`` times; latencies, and the share not learned from."""
    before = {name: metrics(server) for name, server in servers.items()}
    loads = {name: Load(rate) for name in servers}
    for turn in range(turns):
        for name, server in servers.items():
            asyncio.run(at_rate(server.port, frames(), loads[name], seconds, seed=turn))
            until_learned(server)
    found = {name: load.summary() for name, load in loads.items()}
    for name, server in servers.items():
        after = metrics(server)
        skipped, learned = (
            after.get(key, 0.0) - before[name].get(key, 0.0)
            for key in ("grotta_adaptation_skipped_total", "grotta_adapted_total")
        )
        if name != "source":
            found[name]["skipped_share"] = round(skipped / max(1.0, skipped + learned), 3)
            for p in ("p50", "p99"):
                found[name][f"{p}_ratio"] = round(found[name][f"{p}_ms"] / found["source"][f"{p}_ms"], 2)
    return found


def measure(folder: Path, names: list[str], seconds: float, turns: int, keep_up: float) -> dict[str, Any]:
    model = weights(folder)
    chosen = {name: FLAGS[name] for name in ("source", *names)}
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "streams": STREAMS}
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(folder / name, *flags, "--log-level", "warning", model=model))
            for name, flags in chosen.items()
        }
        by_turns(servers, keep_up, 2, 1)
        capacity = asyncio.run(as_fast_as_possible(servers["source"].port, frames(), 8, seconds))
        found["source_capacity_per_second"] = round(capacity, 1)
        found["keeps_up"] = by_turns(servers, keep_up, seconds, turns)
        found["half_of_capacity"] = by_turns(servers, capacity / 2, seconds / 2, turns)
        found["throughput"] = throughput(servers["source"], seconds)
    found["load_average"] = os.getloadavg()
    return found


def throughput(server: Server, seconds: float) -> dict[str, float]:
    """Images per second of batches of 64: through the server (two streams), and in a bare loop over the library."""
    batches = [raw_request(pictures(64, i), f"s{i}") for i in range(2)]
    served = 64 * asyncio.run(as_fast_as_possible(server.port, batches, 2, seconds))
    best = 0.0
    adapter = grotta.create("source", grotta.models.create_model("resnet20", num_classes=10))
    images = [torch.from_numpy(pictures(64, i)) for i in range(2)]
    for threads in (1, 2):
        torch.set_num_threads(threads)
        adapter(images[0])
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds / 2:
            adapter(images[count % 2])
            count += 1
        best = max(best, 64 * count / (time.perf_counter() - began))
    return {"served": round(served, 1), "bare_loop": round(best, 1), "ratio": round(served / best, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="of one server's turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep-up", type=float, default=6, help="requests per second that adaptation keeps up with")
    parser.add_argument("names", nargs="*", default=["default"], help=f"beside the source: {', '.join(FLAGS)}")
    given = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        json.dump(measure(Path(folder), **given), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
