"""A thousand streams with full banks in one process: memory, and whether they come back as they were.

``python -m benchmarks.serve.many`` prints one JSON object.
"""

import argparse
import json
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


def touch_all(folder: Path, streams: int) -> dict[str, Any]:
    spec = weights(folder)
    model = grotta.models.create_model("resnet20", weights=spec.split("@")[1])
    full_adapter(model).save(folder / "full.safetensors")
    content = (folder / "full.safetensors").read_bytes()
    flags = [word for key, value in OPTIONS.items() for word in ("--option", f"{key}={value}")]
    names = [f"s{i}" for i in range(streams)]
    with serving(folder / "state", *flags, "--log-level", "warning", model=spec) as server:
        put = lambda name: server.client.put("/v2/models/m/stream/import", params={"name": name}, content=content)  # noqa: E731
        assert put(names[0]).status_code == 200
        server.infer(pictures(1), names[0], wait=True)
        one = peak = resident_mb(server)
        began = time.perf_counter()
        for i, name in enumerate(names[1:], 1):
            assert put(name).status_code == 200
            server.infer(pictures(1, i), name, wait=True)
            peak = max(peak, resident_mb(server))
        first = time.perf_counter() - began
        wrong = 0
        began = time.perf_counter()
        for i, name in enumerate(names):
            served = server.infer(pictures(1, 5000 + i), name, wait=True)
            peak = max(peak, resident_mb(server))
            if i % (streams // 20) == 0:
                adapter = grotta.load(folder / "full.safetensors", model)
                adapter(torch.from_numpy(pictures(1, i)))
                wrong += not np.array_equal(served, adapter(torch.from_numpy(pictures(1, 5000 + i))).numpy())
        again = time.perf_counter() - began
        listed = server.client.get("/v2/models/m/streams").json()
    return {
        "streams": listed["total"],
        "in_memory": sum(stream["state"] == "live" for stream in listed["streams"]),
        "one_stream_mb": round(one),
        "peak_mb": round(peak),
        "above_one_stream_mb": round(peak - one),
        "checkpoint_mb": round(len(content) / 1e6, 2),
        "checked_bit_for_bit": 20,
        "wrong": wrong,
        "import_and_first_touch_ms": round(1000 * first / streams, 1),
        "touch_from_disk_ms": round(1000 * again / streams, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        json.dump(touch_all(Path(folder), given.streams), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
