"""A thousand streams with full banks in one process: memory, and whether they come back as they were.

``python -m benchmarks.serve.many`` prints one JSON object.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import grotta
from benchmarks.serve.harness import Server, pictures, serving
from benchmarks.serve.latency import weights
from grotta.serve.state.store import StreamStore

OPTIONS = {"capacity": 1024, "bank_batch": 8, "lambda_batch": 0.0}  # a full bank, a cheap step


def resident_mb(server: Server) -> float:
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def full_adapter(model: torch.nn.Module) -> grotta.Adapter:
    """An adapter whose bank holds 1024 images: filled directly, as learning it would take minutes."""
    adapter = grotta.create("grotta", model, **OPTIONS)
    adapter(torch.from_numpy(pictures(8)))
    assert adapter.memory is not None
    labels = torch.arange(1040) % 10
    for start in range(0, 1040, 104):
        adapter.memory.add(torch.from_numpy(pictures(104, start)), labels[start : start + 104])
    return adapter


def put_in_place(state: Path, names: list[str], checkpoint: Path) -> None:
    """Streams as a server leaves them on disk: all with the same state."""
    store = StreamStore(state)
    for name in names:
        store.describe("m", name, ended=False)
        os.link(checkpoint, store.folder("m", name) / "1.safetensors")


def touch_all(folder: Path, streams: int, seconds: float) -> dict[str, Any]:
    """Wake ``streams`` streams in turn, for at most ``seconds``; then wake twenty of the first again and compare."""
    spec = weights(folder)
    model = grotta.models.create_model("resnet20", weights=spec.split("@")[1])
    checkpoint = folder / "full.safetensors"
    full_adapter(model).save(checkpoint)
    names = [f"s{i}" for i in range(streams)]
    put_in_place(folder / "state", names, checkpoint)
    flags = ["--method", "grotta"] + [word for key, value in OPTIONS.items() for word in ("--option", f"{key}={value}")]
    with serving(folder / "state", *flags, "--log-level", "warning", model=spec) as server:
        began, one, peak, touched = time.perf_counter(), 0.0, 0.0, 0
        for i, name in enumerate(names):
            server.infer(pictures(1, i), name, wait=True)
            peak = max(peak, resident_mb(server))
            one = one or peak
            touched += 1
            if time.perf_counter() - began > seconds:
                break
        took = time.perf_counter() - began
        wrong, checked = 0, range(0, min(20, touched))
        for i in checked:
            served = server.infer(pictures(1, 5000 + i), names[i], wait=True)
            adapter = grotta.load(checkpoint, model)
            adapter(torch.from_numpy(pictures(1, i)))
            wrong += not np.array_equal(served, adapter(torch.from_numpy(pictures(1, 5000 + i))).numpy())
        peak = max(peak, resident_mb(server))
        listed = server.client.get("/v2/models/m/streams").json()
    return {
        "streams": listed["total"],
        "touched": touched,
        "in_memory": sum(stream["state"] == "live" for stream in listed["streams"]),
        "one_stream_mb": round(one),
        "peak_mb": round(peak),
        "above_one_stream_mb": round(peak - one),
        "checkpoint_mb": round(checkpoint.stat().st_size / 1e6, 2),
        "checked_bit_for_bit_after_eviction": len(checked),
        "wrong": wrong,
        "touch_from_disk_ms": round(1000 * took / touched, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        json.dump(touch_all(Path(folder), given.streams, given.seconds), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
