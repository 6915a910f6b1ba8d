"""Two servers and nginx over one state folder: one is killed under load, and its streams go on with the other.

``python -m benchmarks.serve.cluster`` runs it with 200 streams.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serve.harness import LIGHT, Server, binary_request, free_port, pictures

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


class Driver(threading.Thread):
    """Sends frames of some streams through the proxy, again and again, and notes every answer."""

    def __init__(self, port: int, names: list[str], stop: threading.Event) -> None:
        super().__init__()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)
        self.names, self.stop = names, stop
        self.steps: dict[str, int] = {}
        self.answered: dict[str, list[tuple[float, float]]] = {name: [] for name in names}  # when asked, when answered
        self.asked: dict[str, float] = {}  # since when, for a stream whose answer is awaited
        self.refused = 0

    def run(self) -> None:
        seed = 0
        while not self.stop.is_set():
            for name in self.names:
                if self.stop.is_set():
                    return
                self.send(name, seed)
            seed += 1

    def send(self, name: str, seed: int) -> None:
        body, length = binary_request(pictures(1, seed), name, wait=True)
        headers = {"Inference-Header-Content-Length": length, "X-Grotta-Stream": name}
        self.asked.setdefault(name, time.time())
        try:
            answer = self.client.post("/v2/models/m/infer", content=body, headers=headers)
        except httpx.HTTPError:
            self.refused += 1
            time.sleep(0.2)
            return
        if answer.status_code == 200:
            self.answered[name].append((self.asked.pop(name), time.time()))
            self.steps[name] = answer.json()["parameters"]["step"]
        else:
            self.refused += 1
            time.sleep(0.2)


def takeover(folder: Path, *, streams: int, before: float, after: float, drivers: int = 4) -> dict[str, Any]:
    """Load, kill one of two servers, and look at what the streams and the logs tell."""
    flags = (*LIGHT, "--shared", "--lease-seconds", "5", "--checkpoint-steps", str(EVERY), "--max-live", str(streams))
    servers = []
    for port in (free_port(), free_port()):
        servers.append(Server(folder / "state", *flags, "--advertise", f"http://127.0.0.1:{port}", port=port))
    first, second = servers
    names = [f"cam-{i}" for i in range(streams)]
    stop = threading.Event()
    try:
        for server in servers:
            server.until_ready()
        with nginx(folder, (first.port, second.port)) as port:
            threads = [Driver(port, names[i::drivers], stop) for i in range(drivers)]
            for thread in threads:
                thread.start()
            time.sleep(before)
            steps = {name: step for thread in threads for name, step in thread.steps.items()}
            killed = time.time()
            first.kill()
            time.sleep(after)
            stop.set()
            for thread in threads:
                thread.join()
    finally:
        stop.set()
        for server in servers:
            server.stop()
    answered = {name: times for thread in threads for name, times in thread.answered.items()}
    unanswered = [name for thread in threads for name, since in thread.asked.items() if time.time() - since > 10]
    return judge(servers, steps, answered, killed, unanswered) | {"refused": sum(thread.refused for thread in threads)}


def judge(
    servers: list[Server],
    steps: dict[str, int],
    answered: dict[str, list[tuple[float, float]]],
    killed: float,
    unanswered: list[str],
) -> dict[str, Any]:
    """How long streams waited after the kill, how old they came back, and whether two servers ever had one at once."""
    requests = sorted(
        (line for server in servers for line in server.events("request") if "epoch" in line),
        key=lambda line: line["time"],
    )
    owners: dict[tuple[str, int], set[str]] = {}
    newest: dict[str, int] = {}
    two_owners: list[str] = []
    resumed: dict[str, int] = {}
    for line in requests:
        name, epoch = line["stream"], line["epoch"]
        owners.setdefault((name, epoch), set()).add(line["server"])
        if epoch < newest.get(name, 0):
            two_owners.append(f"{name}: epoch {epoch} after {newest[name]}")
        if epoch > newest.get(name, 0) and line["time"] > killed:
            resumed.setdefault(name, line["step"])
        newest[name] = max(epoch, newest.get(name, 0))
    two_owners += [f"{key}: {found}" for key, found in owners.items() if len(found) > 1]
    after = {name: [pair for pair in pairs if pair[1] > killed] for name, pairs in answered.items()}
    waits = {name: pairs[0][1] - max(killed, pairs[0][0]) for name, pairs in after.items() if pairs}
    behind = {name: steps[name] - (step - 1) for name, step in resumed.items() if name in steps}
    return {
        "streams": len(answered),
        "answers": len(requests),
        "answered_after": len(waits),
        "still_waiting": unanswered,
        "longest_wait_seconds": round(max(waits.values(), default=0.0), 2),
        "taken_over": len(resumed),
        "most_steps_lost": max(behind.values(), default=0),
        "checkpoint_steps": EVERY,
        "two_owners": two_owners,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        json.dump(takeover(Path(made), streams=200, before=60, after=60), sys.stdout, indent=1)
