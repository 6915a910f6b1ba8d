"""Two servers and nginx over one state folder: one is killed under load, and its streams go on with the other.

``python -m benchmarks.serve.cluster`` runs it with 200 streams.
"""

import argparse
import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import safe_open

from benchmarks.serve.client import Connection, raw_request
from benchmarks.serve.harness import Server, free_port, pictures
from grotta.serve.state.store import StreamStore

EVERY = 3
CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"


@contextlib.contextmanager
def nginx(folder: Path, ports: tuple[int, int]) -> Iterator[int]:
    """The proxy of ``deploy/nginx.conf`` in front of two ports of loopback."""
    listen = free_port()
    text = CONFIG.read_text()
    for written, port in (("127.0.0.1:8000", listen), ("127.0.0.1:8001", ports[0]), ("127.0.0.1:8002", ports[1])):
        assert written in text
        text = text.replace(written, f"127.0.0.1:{port}")
    own = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {", f"pid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nhttp {{\n{own}", 1)
    file = folder / "nginx.conf"
    file.write_text(text)
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([binary, "-p", str(folder), "-c", str(file), "-g", "daemon off;"])
    try:
        yield listen
    finally:
        process.terminate()
        process.wait()


@dataclass
class Camera:
    """One stream's client: a frame through the proxy every few seconds, the next one only after an answer."""

    name: str
    answered: list[tuple[float, float, int]] = field(default_factory=list)  # when asked, when answered, the step
    asked: float | None = None  # since when, while an answer is awaited
    refused: int = 0

    async def run(self, port: int, period: float, first: float, stop: asyncio.Event) -> None:
        connection, due, seed = Connection(port), time.time() + first, 0
        while not stop.is_set():
            await asyncio.sleep(max(0.0, due - time.time()))
            self.asked = self.asked or time.time()
            sent = raw_request(pictures(1, seed), self.name, binary_data_output=False)
            try:
                status, body = await connection.exchange(sent)
            except (OSError, asyncio.IncompleteReadError):
                status, connection = 0, Connection(port)
            if status == 200:
                self.answered.append((self.asked, time.time(), json.loads(body)["parameters"]["step"]))
                self.asked, due, seed = None, max(due + period, time.time()), seed + 1
            else:
                self.refused, due = self.refused + 1, time.time() + 0.5
        connection.close()


@dataclass
class Kill:
    """When a server was killed, and the steps of the checkpoints that were on disk then."""

    when: float
    steps: dict[str, int]


async def drive(cameras: list[Camera], port: int, period: float, first: Server, before: float, after: float) -> Kill:
    """Run all cameras, and kill the first server while they run."""
    stop = asyncio.Event()
    tasks = [
        asyncio.create_task(camera.run(port, period, period * i / len(cameras), stop))
        for i, camera in enumerate(cameras)
    ]
    await asyncio.sleep(before)
    first.kill()
    kill = Kill(time.time(), {})
    kill.steps = await asyncio.to_thread(checkpoints, first.state)  # nobody claims a stream before the lease is over
    await asyncio.sleep(after)
    stop.set()
    await asyncio.gather(*tasks)
    return kill


def checkpoints(state: Path) -> dict[str, int]:
    """The step of every stream's last checkpoint."""
    store, steps = StreamStore(state), {}
    for stored in store.streams("m"):
        if (path := store.checkpoint("m", stored.name)) is not None:
            with safe_open(path, framework="np") as file:
                steps[stored.name] = int(file.get_tensor("step"))
    return steps


def takeover(folder: Path, *, streams: int, before: float, after: float, period: float = 10) -> dict[str, Any]:
    """Load, kill one of two servers, and look at what the streams and the logs tell."""
    flags = ("--shared", "--checkpoint-steps", str(EVERY), "--max-live", str(streams))
    servers = []
    for port in (free_port(), free_port()):
        servers.append(Server(folder / "state", *flags, "--advertise", f"http://127.0.0.1:{port}", port=port))
    first, second = servers
    cameras = [Camera(f"cam-{i}") for i in range(streams)]
    try:
        for server in servers:
            server.until_ready()
        with nginx(folder, (first.port, second.port)) as port:
            kill = asyncio.run(drive(cameras, port, period, first, before, after))
    finally:
        for server in servers:
            server.stop()
    return judge(servers, cameras, kill)


def judge(servers: list[Server], cameras: list[Camera], kill: Kill) -> dict[str, Any]:
    """How long streams waited after the kill, how old they came back, and whether two servers ever had one at once."""
    requests = sorted(
        (line for server in servers for line in server.events("request") if "epoch" in line),
        key=lambda line: line["time"],
    )
    owners: dict[tuple[str, int], set[str]] = {}
    newest: dict[str, int] = {}
    two_owners: list[str] = []
    for line in requests:
        name, epoch = line["stream"], line["epoch"]
        owners.setdefault((name, epoch), set()).add(line["server"])
        if epoch < newest.get(name, 0):
            two_owners.append(f"{name}: epoch {epoch} after {newest[name]}")
        newest[name] = max(epoch, newest.get(name, 0))
    two_owners += [f"{key}: {found}" for key, found in owners.items() if len(found) > 1]
    opened = servers[1].events("restored", "started")
    resumed = {line["stream"]: line["step"] for line in opened if line["time"] > kill.when}
    seen = {c.name: max((step for _, when, step in c.answered if when <= kill.when), default=0) for c in cameras}
    after = {c.name: [(asked, when) for asked, when, _ in c.answered if when > kill.when] for c in cameras}
    waits = [found[0][1] - max(kill.when, found[0][0]) for found in after.values() if found]
    served_again = max((found[0][1] for found in after.values() if found), default=kill.when)
    return {
        "streams": len(cameras),
        "answers": sum(len(c.answered) for c in cameras),
        "not_answered_after": sorted(name for name, found in after.items() if not found),
        "longest_wait_seconds": round(max(waits, default=0.0), 2),
        "all_served_again_after_seconds": round(served_again - kill.when, 2),
        "refused": sum(c.refused for c in cameras),
        "taken_over": len(resumed),
        "not_from_last_checkpoint": sorted(n for n, step in resumed.items() if step != kill.steps.get(n, 0)),
        "most_steps_lost": max((seen[name] - step for name, step in resumed.items()), default=0),
        "checkpoint_steps": EVERY,
        "two_owners": two_owners,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--period", type=float, default=10, help="seconds from one frame of a stream to the next")
    parser.add_argument("--before", type=float, default=40, help="seconds of load before the kill")
    parser.add_argument("--after", type=float, default=30)
    given = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as made:
        json.dump(takeover(Path(made), **given), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
