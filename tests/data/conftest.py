"""A cache of its own for every test, pictures to read, and a web server that can misbehave."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grotta.data import cifar
from grotta.data.download import Remote


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    if request.node.get_closest_marker("real") is None:
        monkeypatch.delenv("GROTTA_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def few_cifar_pictures(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let CIFAR have a few pictures a file: one file to test with, five times as many pictures to train on."""

    def set_count(count: int) -> None:
        monkeypatch.setattr(cifar, "COUNTS", {"train": 5 * count, "test": count})

    return set_count


@pytest.fixture
def make_picture() -> Callable[..., np.ndarray]:
    def make(path: Path, seed: int = 0, size: tuple[int, int] = (20, 16)) -> np.ndarray:
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
        return pixels

    return make


@dataclass
class Server:
    """What a web server gives, and how it misbehaves.

    Attributes:
        address: of the running server.
        files: path -> content.
        cut_after: path -> for each coming answer, the number of bytes after which the connection is cut.
        ignores_range: answer with the whole file whatever is asked for.
        content_type: of every answer.
        content_length: of every answer; the true one if "".
        ranges: the Range header of each request, or "".
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: dict[str, list[int]] = field(default_factory=dict)
    ignores_range: bool = False
    content_type: str = "application/octet-stream"
    content_length: str = ""
    ranges: list[str] = field(default_factory=list)

    def put(self, name: str, content: bytes) -> Remote:
        self.files[f"/{name}"] = content
        return Remote(f"{self.address}/{name}", "md5", hashlib.md5(content).hexdigest(), len(content))


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, server_state: Server, *arguments: object) -> None:
        self.state = server_state
        super().__init__(*arguments)

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.state.ranges.append(asked)
        content = self.state.files.get(self.path)
        if content is None:
            return self.send_error(404)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and not self.state.ignores_range else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", self.state.content_type)
        self.send_header("Content-Length", self.state.content_length or str(len(content) - start))
        self.end_headers()
        cuts = self.state.cut_after.get(self.path)
        self.wfile.write(content[start : start + cuts.pop(0)] if cuts else content[start:])
        return None

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    handler = functools.partial(Handler, state)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.address = f"http://127.0.0.1:{running.server_port}"
        yield state
        running.shutdown()
        thread.join()
