"""kill -9 under load, again and again: every stream must come back no older than its checkpoint interval.

``python -m benchmarks.serve.crashes`` runs twenty rounds.
"""

import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serve.harness import LIGHT, Server, binary_request, pictures, serving

EVERY = 5


def crash_rounds(
    state: Path, *, rounds: int, streams: int, seconds: float, limit: float = float("inf")
) -> dict[str, Any]:
    """Load ``streams`` streams, kill the server in the middle, start it again and compare; ``rounds`` times.

    After ``limit`` seconds no further round begins.
    """
    began, done = time.monotonic(), 0
    draw = random.Random(0)
    acknowledged: dict[str, int] = {}
    lost: list[str] = []
    leftovers: list[str] = []
    ages: list[int] = []
    steps = 0
    flags = (*LIGHT, "--checkpoint-steps", str(EVERY))
    for _ in range(rounds):
        if time.monotonic() - began > limit:
            break
        done += 1
        with serving(state, *flags) as server:
            leftovers += [str(file) for file in state.rglob("*.part")]
            for name, step in acknowledged.items():
                server.infer(pictures(1), name, wait=True)
                age = step - (server.inspect(name)["step"] - 1)
                ages.append(age)
                if age > EVERY - 1 and step >= EVERY:
                    lost.append(f"{name}: {age} steps behind {step}")
            acknowledged = {f"s{i}": 0 for i in range(streams)}
            _load(server, acknowledged, seconds * draw.uniform(0.5, 1.5))
            steps += sum(acknowledged.values())
    return {
        "rounds": done,
        "streams": streams,
        "checkpoint_steps": EVERY,
        "steps": steps,
        "lost": lost,
        "leftovers": leftovers,
        "oldest_age_steps": max(ages, default=0),
    }


def _load(server: Server, acknowledged: dict[str, int], seconds: float) -> None:
    """Step every stream from threads of their own, and kill the server while they do."""
    stop = threading.Event()

    def drive(name: str, seed: int) -> None:
        client = httpx.Client(base_url=server.url, timeout=30, trust_env=False)
        while not stop.is_set():
            body, length = binary_request(pictures(1, seed), name, wait=True)
            headers = {"Inference-Header-Content-Length": length}
            with contextlib.suppress(httpx.HTTPError):
                answer = client.post("/v2/models/m/infer", content=body, headers=headers)
                if answer.status_code == 200:
                    acknowledged[name] = answer.json()["parameters"]["step"]
            seed += 1

    threads = [threading.Thread(target=drive, args=(name, 1000 * i)) for i, name in enumerate(acknowledged)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report = crash_rounds(Path(folder) / "state", rounds=20, streams=10, seconds=3.0)
    json.dump(report, sys.stdout, indent=1)
