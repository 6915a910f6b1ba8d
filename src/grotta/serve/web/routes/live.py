"""The live page, what it draws, and the metrics."""

import base64
import io
import time
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response
from PIL import Image
from starlette.concurrency import run_in_threadpool

from grotta._version import __version__
from grotta.serve import manage
from grotta.serve.errors import Refused, bad
from grotta.serve.metrics import resident_bytes
from grotta.serve.names import stream_name
from grotta.serve.protocol.tensors import Array
from grotta.serve.streams.history import SECONDS
from grotta.serve.streams.stream import Stream
from grotta.serve.web.address import service_of

router = APIRouter(include_in_schema=False)
_ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "charts.js": "text/javascript"}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
_MOST_SHOWN = 100


@router.get("/")
async def page() -> Response:
    """The page itself, the same for everyone; its data comes from /live."""
    headers = {"Content-Security-Policy": f"{_POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
    return Response(_asset("index.html"), media_type="text/html", headers=headers)


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    """A part of the page."""
    if name not in _ASSETS:
        raise Refused(404, "no such file")
    return Response(_asset(name), media_type=_ASSETS[name])


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """For Prometheus."""
    return Response(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/live")
async def overview(request: Request) -> dict[str, Any]:
    """All streams with their sparklines, those used last first, and what the server does."""
    service, now = service_of(request), time.time()
    streams = sorted(service.streams.values(), key=lambda stream: -stream.used)
    shown = streams[:_MOST_SHOWN]
    return {
        "version": __version__,
        "server": service.ownership.server,
        "models": {m.name: {"method": m.settings.method, "classes": len(m.labels)} for m in service.models.values()},
        "streams": await run_in_threadpool(lambda: [_row(stream, now) for stream in shown]),
        "total": len(streams),
        "live": sum(stream.is_live for stream in streams),
        "memory_mb": round(resident_bytes() / 1e6),
        "waiting": service.waiting,
        "queued": sum(len(stream.strand) for stream in streams),
        "events": service.events.latest()[:30],
        "interval": SECONDS,
        "now": now,
    }


@router.get("/live/stream")
async def detail(request: Request) -> dict[str, Any]:
    """One stream over the last minutes, with its last frames."""
    service, now = service_of(request), time.time()
    model = service.models.get(request.query_params.get("model", ""))
    if model is None:
        raise bad("model must name one that is served")
    name = stream_name(request.query_params.get("name", ""), service.settings.limits.name_length)
    stream = manage.known(service, model, name or "")
    history = stream.history
    frames = [
        {"time": when, "picture": _png(pixels), "label": model.labels[which], "confidence": round(sure, 3)}
        for when, pixels, which, sure in reversed(history.frames)
    ]
    return {
        **manage.inspect(service, stream),
        "series": history.series(now),
        "classes": history.classes(now, model.labels),
        "frames": frames,
        "interval": SECONDS,
        "now": now,
    }


def _row(stream: Stream, now: float) -> dict[str, Any]:
    series = stream.history.series(now)
    kept = ("images", "entropy", "confidence", "accuracy", "reference", "estimated_accuracy", "agreement", "skipped")
    latest = stream.history.latest
    return {**stream.summary(), "latest": latest, "series": {name: series[name] for name in kept}}


def _png(pixels: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0]).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _asset(name: str) -> bytes:
    return (files("grotta.serve.web") / "assets" / name).read_bytes()
