"""The ASGI application."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from grotta._version import __version__
from grotta.serve.catalogue import ServedModel, load_model
from grotta.serve.errors import Refused
from grotta.serve.metrics import resident_bytes
from grotta.serve.service import Service
from grotta.serve.settings import Settings
from grotta.serve.streams.stream import Stream
from grotta.serve.upkeep import keep_up
from grotta.serve.web.middleware import Around
from grotta.serve.web.routes import infer, live, streams


def make_app(settings: Settings, models: Mapping[str, ServedModel] | None = None) -> FastAPI:
    """The application for ``settings``; any ASGI server runs it.

    >>> app = make_app(Settings())
    >>> app.title
    'grotta'
    """
    loaded = dict(models) if models is not None else {m.name: load_model(m) for m in settings.models}
    service = Service(settings, loaded)
    service.metrics.watch(lambda: _gauges(service))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        upkeep = asyncio.create_task(keep_up(service))
        try:
            yield
        finally:
            upkeep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await upkeep
            await service.stop()

    app = FastAPI(title="grotta", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_middleware(Around, settings=settings, metrics=service.metrics)
    for part in (infer, streams, live):
        app.include_router(part.router)

    describe = app.openapi

    def openapi() -> dict[str, Any]:
        """The framework's document, with the names of the models that are served."""
        document = describe()
        for operation in (entry for path in document["paths"].values() for entry in path.values()):
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "model":
                    parameter["schema"]["enum"] = list(loaded)
        return document

    app.openapi = openapi  # type: ignore[method-assign]

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse({"error": str(error)}, error.status, error.headers)

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": str(error.errors())[:200]}, 400)

    return app


def _gauges(service: Service) -> dict[str, dict[tuple[str, ...], float]]:
    """What is measured when it is asked for."""
    streams = list(service.streams.values())
    names = list(service.models)
    count: dict[tuple[str, ...], float] = {
        (name, state): float(sum(s.model.name == name and s.is_live == (state == "live") for s in streams))
        for name in names
        for state in ("live", "disk")
    }
    queued: dict[tuple[str, ...], float] = {
        (name,): float(sum(len(s.strand) for s in streams if s.model.name == name)) for name in names
    }
    gauges: dict[str, dict[tuple[str, ...], float]] = {
        "streams|Streams, by where they are.|model|state": count,
        "adaptation_queue|Batches that wait to be learned from.|model": queued,
        "requests_waiting|Requests that wait for an answer.": {(): float(service.waiting)},
        "stream_bytes|Memory of the streams in memory, about.": {(): float(sum(s.bytes for s in streams))},
        "stored_bytes|Size of all checkpoints.": {(): float(service.stored_bytes)},
        "resident_bytes|Memory of the process.": {(): float(resident_bytes())},
    }
    for field in ("estimated_accuracy", "agreement"):
        means: dict[tuple[str, ...], float] = {}
        for name in names:
            if (mean := _mean(streams, name, field)) is not None:
                means[name,] = mean
        if means:
            gauges[f"{field}|Mean over the streams in memory.|model"] = means
    return gauges


def _mean(streams: list[Stream], model: str, field: str) -> float | None:
    values = [
        s.history.latest[field] for s in streams if s.is_live and s.model.name == model and field in s.history.latest
    ]
    return sum(values) / len(values) if values else None
