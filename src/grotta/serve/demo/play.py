"""Play cameras over a server: send frames, count what was right, and tell the server how a frozen model did."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import numpy as np
import torch
from torch import nn

from grotta.data import load_clean
from grotta.methods.registry import create
from grotta.serve.demo.cameras import Camera
from grotta.serve.tensors import Array

BATCH, EVERY = 16, 0.5


def play(host: str, port: int, model: str, network: nn.Module, cameras: list[Camera], stop: threading.Event) -> None:
    """Send a batch of each camera every half second until ``stop``; the frozen model answers beside the server."""
    images, labels = load_clean("fashion")
    pixels, known = images.permute(0, 2, 3, 1).contiguous().numpy(), labels.numpy()
    players = [_Player(host, port, model, camera.name, camera.batches(pixels, known, BATCH)) for camera in cameras]
    frozen = create("source", network)
    due = time.monotonic()
    while not stop.is_set():
        for player in players:
            player.send(frozen)
        due = max(due + EVERY, time.monotonic())
        stop.wait(due - time.monotonic())


class _Player:
    """One camera and its connection."""

    def __init__(self, host: str, port: int, model: str, name: str, batches: Iterator[tuple[Array, Array]]) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=30)
        self._model, self._name, self._batches = model, name, batches

    def send(self, frozen: nn.Module) -> None:
        images, labels = next(self._batches)
        answers = self._infer(images)
        reference = frozen(torch.from_numpy(images)).argmax(1).numpy()
        score = {
            "correct": int((answers == labels).sum()),
            "total": len(labels),
            "reference_correct": int((reference == labels).sum()),
            "reference_total": len(labels),
        }
        path = f"/v2/models/{self._model}/stream/score?name={quote(self._name, safe='')}"
        self._post(path, json.dumps(score).encode(), {"Content-Type": "application/json"})

    def _infer(self, images: Array) -> Array:
        tensor = {
            "name": "images",
            "shape": list(images.shape),
            "datatype": "UINT8",
            "parameters": {"binary_data_size": images.nbytes},
        }
        wanted = {"inputs": [tensor], "outputs": [{"name": "classes"}], "parameters": {"sequence_id": self._name}}
        head = json.dumps(wanted).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        answer = self._post(f"/v2/models/{self._model}/infer", head + images.tobytes(), headers)
        return np.array(json.loads(answer)["outputs"][0]["data"])

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise OSError(f"the server answered {answer.status}: {content.decode(errors='replace')[:200]}")
        return content
