"""Play cameras over a server: send frames, count what was right, and tell the server how a frozen model did."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
import torch
from torch import nn

from grotta.methods.registry import create
from grotta.serve.protocol.tensors import Array

BATCH, EVERY = 16, 0.5


@dataclass(frozen=True)
class Scene:
    """A camera's name and its batches of images and labels, the served model that answers, and its network."""

    camera: str
    batches: Iterator[tuple[Array, Array]]
    model: str
    network: nn.Module


def play(host: str, port: int, scenes: Sequence[Scene], stop: threading.Event) -> None:
    """Send a batch of each scene every half second until ``stop``; the frozen model answers beside the server."""
    players = [_Player(host, port, scene) for scene in scenes]
    due = time.monotonic()
    while not stop.is_set():
        for player in players:
            player.send()
        due = max(due + EVERY, time.monotonic())
        stop.wait(due - time.monotonic())


class _Player:
    """One scene and its connection."""

    def __init__(self, host: str, port: int, scene: Scene) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=30)
        self._scene, self._frozen = scene, create("source", scene.network)

    def send(self) -> None:
        images, labels = next(self._scene.batches)
        answers = self._infer(images)
        reference = self._frozen(torch.from_numpy(images)).argmax(1).numpy()
        score = {
            "correct": int((answers == labels).sum()),
            "total": len(labels),
            "reference_correct": int((reference == labels).sum()),
            "reference_total": len(labels),
        }
        path = f"/v2/models/{self._scene.model}/stream/score?name={quote(self._scene.camera, safe='')}"
        self._post(path, json.dumps(score).encode(), {"Content-Type": "application/json"})

    def _infer(self, images: Array) -> Array:
        tensor = {
            "name": "images",
            "shape": list(images.shape),
            "datatype": "UINT8",
            "parameters": {"binary_data_size": images.nbytes},
        }
        named = {"sequence_id": self._scene.camera}
        head = json.dumps({"inputs": [tensor], "outputs": [{"name": "classes"}], "parameters": named}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        answer = self._post(f"/v2/models/{self._scene.model}/infer", head + images.tobytes(), headers)
        return np.array(json.loads(answer)["outputs"][0]["data"])

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise OSError(f"the server answered {answer.status}: {content.decode(errors='replace')[:200]}")
        return content
