"""Answer latency with and without adaptation at the same load, and throughput against a bare loop.

``python -m benchmarks.serve.latency`` prints one JSON object. CIFAR ResNet-20; speed does not depend on
its weights.
"""

import argparse
import asyncio
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
from benchmarks.serve.client import as_fast_as_possible, at_rate, raw_request
from benchmarks.serve.harness import Server, pictures, serving

STREAMS = 8


def weights(folder: Path) -> str:
    file = folder / "resnet20.safetensors"
    save_file(grotta.models.create_model("resnet20", num_classes=10).state_dict(), file)
    return f"m=resnet20@{file}"


def skipped_share(server: Server) -> float:
    text = server.client.get("/metrics").text
    lines = dict(line.split(" ") for line in text.splitlines() if line.startswith("grotta_adapt"))
    skipped = float(lines.get('grotta_adaptation_skipped_total{model="m"}', 0))
    learned = float(lines.get('grotta_adapted_total{model="m"}', 0))
    return round(skipped / max(1.0, skipped + learned), 3)


def frames(size: int = 1) -> list[bytes]:
    return [raw_request(pictures(size, i), f"s{i}") for i in range(STREAMS)]


def measure(folder: Path, seconds: float, keep_up: float) -> dict[str, Any]:
    model = weights(folder)
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "streams": STREAMS}
    with serving(folder / "source", "--method", "source", "--log-level", "warning", model=model) as server:
        asyncio.run(at_rate(server.port, frames(), 20, 2))
        capacity = asyncio.run(as_fast_as_possible(server.port, frames(), 8, seconds / 3))
        found["source_capacity_per_second"] = round(capacity, 1)
        found["source"] = {
            "keep_up": asyncio.run(at_rate(server.port, frames(), keep_up, seconds)),
            "half": asyncio.run(at_rate(server.port, frames(), capacity / 2, seconds)),
        }
        found["throughput"] = throughput(server, seconds / 3)
    for preset in ("fast", "paper"):
        flags = ("--method", "grotta", "--preset", preset, "--log-level", "warning")
        with serving(folder / preset, *flags, model=model) as server:
            asyncio.run(at_rate(server.port, frames(), 20, 2))
            time.sleep(5)  # what was queued while it warmed up
            rate = keep_up if preset == "fast" else keep_up / 4
            results: dict[str, Any] = {"keep_up": asyncio.run(at_rate(server.port, frames(), rate, seconds))}
            results["keep_up_skipped_share"] = skipped_share(server)
            results["half"] = asyncio.run(at_rate(server.port, frames(), capacity / 2, seconds))
            results["half_skipped_share"] = skipped_share(server)
        for load in ("keep_up", "half"):
            for p in ("p50_ms", "p99_ms"):
                results[f"{load}_{p}_ratio"] = round(results[load][p] / found["source"][load][p], 2)
        found[preset] = results
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
        while time.perf_counter() - began < seconds:
            adapter(images[count % 2])
            count += 1
        best = max(best, 64 * count / (time.perf_counter() - began))
    return {"served": round(served, 1), "bare_loop": round(best, 1), "ratio": round(served / best, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--keep-up", type=float, default=4, help="requests per second that adaptation keeps up with")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        json.dump(measure(Path(folder), given.seconds, given.keep_up), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
