"""A real server in a process of its own, on a free port of loopback: for tests and measurements."""

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import safetensors.numpy
import uvicorn

from grotta.serve import ModelSettings, Settings, make_app

SHAPE = (3, 32, 32)
# A step that costs a few milliseconds: what is tested here is the server.
LIGHT = ("--method", "grotta", "--option", "bank_batch=4", "--option", "capacity=40")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """``grotta serve`` and a client for it."""

    def __init__(self, state: Path, *flags: str, port: int | None = None, model: str = "m=fashion_resnet8") -> None:
        self.state, self.port = state, port or free_port()
        self.log = state.with_name(f"{state.name}-{self.port}.log")
        words = [sys.executable, "-m", "grotta", "serve", "--port", str(self.port), "--state", str(state)]
        if model:
            words += ["--model", model]
        source = str(Path(__file__).parents[2] / "src")
        environment = os.environ | {"PYTHONPATH": source} | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        self._log = self.log.open("ab")
        self.process = subprocess.Popen([*words, *flags], stderr=self._log, env=environment)
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    def until_ready(self, seconds: float = 60) -> "Server":
        deadline = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no server: {self.log.read_text()[-2000:]}")
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/v2/health/ready").status_code == 200:
                    return self
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.client.close()
        self._log.close()

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if not kinds or line["event"] in kinds]

    def infer(self, images: np.ndarray, stream: str | int | None = None, **parameters: Any) -> np.ndarray:
        answer = self.post(images, stream, **parameters)
        assert answer.status_code == 200, answer.text
        [output] = answer.json()["outputs"]
        return np.array(output["data"], np.float32).reshape(output["shape"])

    def post(self, images: np.ndarray, stream: str | int | None = None, **parameters: Any) -> httpx.Response:
        body, length = binary_request(images, stream, **parameters)
        return self.client.post("/v2/models/m/infer", content=body, headers={"Inference-Header-Content-Length": length})

    def inspect(self, stream: str) -> dict[str, Any]:
        return dict(self.client.get("/v2/models/m/stream", params={"name": stream}).json())

    def export(self, stream: str) -> bytes:
        answer = self.client.get("/v2/models/m/stream/export", params={"name": stream})
        assert answer.status_code == 200, answer.text
        return answer.content

    def digest(self, stream: str) -> str:
        """Of the whole state of a stream."""
        tensors = safetensors.numpy.load(self.export(stream))
        parts = [
            f"{name}{tensors[name].dtype}{tensors[name].shape}".encode() + tensors[name].tobytes()
            for name in sorted(tensors)
        ]
        return hashlib.sha256(b"|".join(parts)).hexdigest()


def binary_request(images: np.ndarray, stream: str | int | None = None, **parameters: Any) -> tuple[bytes, str]:
    """Body and header length of a request with its images as raw bytes."""
    names = {"uint8": "UINT8", "float32": "FP32", "float64": "FP64", "float16": "FP16"}
    tensor = {
        "name": "images",
        "shape": list(images.shape),
        "datatype": names[images.dtype.name],
        "parameters": {"binary_data_size": images.nbytes},
    }
    given = {**parameters, **({} if stream is None else {"sequence_id": stream})}
    head = json.dumps({"inputs": [tensor], "parameters": given}).encode()
    return head + images.tobytes(), str(len(head))


def pictures(count: int, seed: int = 0) -> np.ndarray:
    """Random uint8 images (count, 3, 32, 32)."""
    return np.random.default_rng(seed).integers(0, 256, (count, *SHAPE), dtype=np.uint8)


class LocalServer(Server):
    """A server in a thread of this process, for what needs no process of its own; quicker to start."""

    def __init__(self, state: Path, **settings: Any) -> None:
        self.state, self.port = state, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        options = {"bank_batch": 4, "capacity": 40}
        models = settings.pop("models", (ModelSettings("m", "fashion_resnet8", method="grotta", options=options),))
        self.settings = Settings(models=models, port=self.port, state=state, **settings)
        app = make_app(self.settings)
        self.service = app.state.service
        self._server = uvicorn.Server(uvicorn.Config(app, port=self.port, log_config=None))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        headers = {"Authorization": f"Bearer {self.settings.token}"} if self.settings.token else {}
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False, headers=headers)

    def until_ready(self, seconds: float = 60) -> "Server":
        deadline = time.monotonic() + seconds
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("no server")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.client.close()


@contextlib.contextmanager
def serving_here(state: Path, **settings: Any) -> Iterator[LocalServer]:
    server = LocalServer(state, **settings)
    try:
        server.until_ready()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def serving(state: Path, *flags: str, **options: Any) -> Iterator[Server]:
    server = Server(state, *flags, **options)
    try:
        yield server.until_ready()
    finally:
        server.stop()
