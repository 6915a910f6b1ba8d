"""A small HTTP client that costs little: the load shares two cores with the server."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.serve.harness import binary_request


class Connection:
    """One kept-alive connection; one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> int:
        """Send a whole request and read the whole answer; returns the status."""
        return (await self.exchange(request))[0]

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a whole request; status and body of the answer."""
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:"))
        body = await self._reader.readexactly(length)
        return int(lines[0].split()[1]), body

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def raw_request(images: np.ndarray, stream: str, model: str = "m", **parameters: Any) -> bytes:
    """The bytes of an inference request with raw tensors in and out, or as ``binary_data_output`` says."""
    body, length = binary_request(images, stream, **{"binary_data_output": True, **parameters})
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
        f"X-Grotta-Stream: {stream}\r\n"
        f"Inference-Header-Content-Length: {length}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass
class Load:
    """What a server did with requests that came at some rate."""

    rate: float
    latencies: list[float] = field(default_factory=list)  # in seconds, from the time a request was due
    statuses: list[int] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        p50, p99 = np.percentile(self.latencies, [50, 99]) * 1000
        return {
            "rate": round(self.rate, 2),
            "requests": len(self.latencies),
            "answered": self.statuses.count(200),
            "p50_ms": round(float(p50), 2),
            "p99_ms": round(float(p99), 2),
        }


async def at_rate(port: int, requests: Sequence[bytes], load: Load, seconds: float, seed: int = 0) -> None:
    """Send ``requests`` in turn at random (Poisson) times, whatever the answers do, and add to ``load`` what came."""
    draw = np.random.default_rng(seed)
    idle = [Connection(port) for _ in range(64)]

    async def one(request: bytes, due: float) -> None:
        connection = idle.pop() if idle else Connection(port)
        load.statuses.append(await connection.send(request))
        load.latencies.append(time.perf_counter() - due)
        idle.append(connection)

    tasks = []
    due = time.perf_counter() + 0.05
    end = due + seconds
    i = 0
    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(requests[i % len(requests)], due)))
        due, i = due + draw.exponential(1 / load.rate), i + 1
    await asyncio.gather(*tasks)
    for connection in idle:
        connection.close()


async def as_fast_as_possible(port: int, requests: Sequence[bytes], workers: int, seconds: float) -> float:
    """Requests answered per second when each of some workers always has one under way."""
    end = time.perf_counter() + seconds
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        connection = Connection(port)
        i = number
        while time.perf_counter() < end:
            assert await connection.send(requests[i % len(requests)]) == 200
            done, i = done + 1, i + workers
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(workers)))
    return done / (time.perf_counter() - began)
