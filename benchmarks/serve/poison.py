"""A poisoned stream: constant frames, then noise, then one class for 10,000 frames; and its neighbour.

The stream must be back within a point of one that was never poisoned, and the neighbour's answers must be the
library's, bit for bit. ``python -m benchmarks.serve.poison`` prints one JSON object.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import grotta
from benchmarks.serve.harness import Server, serving
from grotta.data import corrupt

BATCH = 64


def good_batches(count: int, seed: int, weather: str, severity: int = 3) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of clothes in bad weather, all classes alike."""
    images, labels = grotta.data.load_clean("fashion")
    order = np.random.default_rng(seed).permutation(len(labels))[: count * BATCH]
    pictures = images.numpy().transpose(0, 2, 3, 1)[order]
    shown = corrupt(np.ascontiguousarray(pictures), weather, severity=severity, seed=seed).transpose(0, 3, 1, 2)
    for start in range(0, len(order), BATCH):
        yield np.ascontiguousarray(shown[start : start + BATCH]), labels.numpy()[order[start : start + BATCH]]


def poison(one_class: int) -> Iterator[np.ndarray]:
    """Constant frames, noise, and one class only."""
    draw = np.random.default_rng(0)
    for _ in range(2000 // BATCH):
        yield np.full((BATCH, 3, 32, 32), draw.integers(256), np.uint8)
    for _ in range(2000 // BATCH):
        yield draw.integers(0, 256, (BATCH, 3, 32, 32), dtype=np.uint8)
    images, labels = grotta.data.load_clean("fashion")
    same = images.numpy()[labels.numpy() == 3]
    for _ in range(one_class // BATCH):
        yield np.ascontiguousarray(same[draw.integers(0, len(same), BATCH)])


def accuracy(server: Server, stream: str, batches: int, seed: int, weather: str) -> float:
    right = [server.infer(x, stream, wait=True).argmax(1) == y for x, y in good_batches(batches, seed, weather)]
    return float(np.concatenate(right).mean())


def run(
    folder: Path, method: str, preset: str, options: dict[str, Any], one_class: int, weather: str
) -> dict[str, Any]:
    flags = ["--method", method, "--preset", preset, "--log-level", "warning"]
    flags += [word for key, value in options.items() for word in ("--option", f"{key}={json.dumps(value)}")]
    model = grotta.models.create_model("fashion_resnet8", weights="bundled")
    neighbour = grotta.create(method, model, preset=preset, **options)
    differing = 0
    with serving(folder / "state", *flags) as server:
        for stream in ("poisoned", "clean"):
            accuracy(server, stream, 20, 1, weather)
        beside = list(good_batches(20, 2, weather))
        for i, images in enumerate(poison(one_class)):
            server.infer(images, "poisoned", wait=True)
            if i % 12 == 0:
                x = beside[(i // 12) % 20][0][:8]
                served = server.infer(x, "neighbour", wait=True)
                differing += not np.array_equal(served, neighbour(torch.from_numpy(x)).numpy())
        at_once = {stream: accuracy(server, stream, 20, 3, weather) for stream in ("poisoned", "clean")}
        after = {stream: accuracy(server, stream, 60, 4, weather) for stream in ("poisoned", "clean")}
        events = {e["event"] for e in server.inspect("poisoned")["events"] if e["event"].startswith("guard")}
        text = server.client.get("/metrics").text
    return {
        "method": method,
        "preset": preset,
        "options": options,
        "weather": weather,
        "guard_events": sorted(events),
        "guard_metrics": [line for line in text.splitlines() if line.startswith("grotta_guard_events_total{")],
        "accuracy_just_after": {key: round(100 * value, 2) for key, value in at_once.items()},
        "accuracy_afterwards": {key: round(100 * value, 2) for key, value in after.items()},
        "behind_points": round(100 * (after["clean"] - after["poisoned"]), 2),
        "neighbours_answers_that_differ": differing,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="grotta")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--options", type=json.loads, default={"guard": True})
    parser.add_argument("--one-class", type=int, default=10_000)
    parser.add_argument("--weather", default="snow", help="the corruption before and after, of severity 3")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), given.method, given.preset, given.options, given.one_class, given.weather)
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
