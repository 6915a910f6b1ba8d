"""What an operator asks of streams, over HTTP."""

from typing import Any

import pydantic_core
from fastapi import APIRouter, Request, Response

from grotta.serve import manage
from grotta.serve.errors import bad
from grotta.serve.service import Service
from grotta.serve.web import openapi
from grotta.serve.web.address import model_of, service_of
from grotta.serve.web.body import named_in_query, query_number, read_body
from grotta.serve.web.security import check_may_manage

router = APIRouter(tags=["Streams"])
_MOST_LISTED = 1000


def _settled(request: Request) -> tuple[Service, Any, str]:
    """Service, model and the stream's name, if the client may manage it."""
    service = service_of(request)
    check_may_manage(service.settings)
    model = model_of(request)
    return service, model, named_in_query(request, service.settings.limits)


@router.get("/v2/models/{model}/streams", summary="List streams", responses=openapi.ANSWERS, openapi_extra=openapi.PAGE)
async def list_streams(request: Request, model: str) -> dict[str, Any]:
    """Streams that this server knows, in memory or on disk, by name; ``?offset=`` continues where a list ended."""
    service = service_of(request)
    check_may_manage(service.settings)
    served = model_of(request)
    offset = query_number(request, "offset")
    names = sorted(name for owner, name in service.streams if owner == served.name)
    shown = names[offset : offset + _MOST_LISTED]
    return {"total": len(names), "streams": [service.streams[served.name, name].summary() for name in shown]}


@router.get("/v2/models/{model}/stream", summary="Inspect one", responses=openapi.ANSWERS, openapi_extra=openapi.NAMED)
async def inspect_stream(request: Request, model: str) -> dict[str, Any]:
    """Counts, the last step, events; the stream is not loaded."""
    service, served, name = _settled(request)
    return manage.inspect(service, manage.known(service, served, name))


@router.post("/v2/models/{model}/stream/reset", summary="Reset", responses=openapi.ANSWERS, openapi_extra=openapi.NAMED)
async def reset_stream(request: Request, model: str) -> dict[str, str]:
    """Reset the stream, in memory and on disk."""
    service, served, name = _settled(request)
    await manage.reset(service, served, name)
    return {"reset": name}


@router.get("/v2/models/{model}/stream/export", summary="Export", responses=openapi.FILE, openapi_extra=openapi.NAMED)
async def export_stream(request: Request, model: str) -> Response:
    """The whole state as one safetensors file, as ``adapter.save`` writes it."""
    service, served, name = _settled(request)
    content = await manage.export(service, served, name)
    disposition = {"Content-Disposition": 'attachment; filename="stream.safetensors"'}
    return Response(content, media_type="application/octet-stream", headers=disposition)


@router.put(
    "/v2/models/{model}/stream/import", summary="Import", responses=openapi.ANSWERS, openapi_extra=openapi.UPLOAD
)
async def import_stream(request: Request, model: str) -> dict[str, Any]:
    """Replace a stream by an exported state; one that does not fit is refused and changes nothing."""
    service, served, name = _settled(request)
    content = await read_body(request, service.settings.limits)
    stream = await manage.import_(service, served, name, content)
    return {"imported": name, "step": stream.step}


@router.delete("/v2/models/{model}/stream", summary="Delete", responses=openapi.ANSWERS, openapi_extra=openapi.NAMED)
async def delete_stream(request: Request, model: str) -> dict[str, str]:
    """Forget a stream, in memory and on disk."""
    service, served, name = _settled(request)
    await manage.delete(service, served, name)
    return {"deleted": name}


@router.post(
    "/v2/models/{model}/stream/release", summary="Hand over", responses=openapi.ANSWERS, openapi_extra=openapi.NAMED
)
async def release_stream(request: Request, model: str) -> dict[str, str]:
    """Save a stream and let another server that shares the state folder have it; servers ask each other this."""
    service, served, name = _settled(request)
    await manage.release(service, served, name)
    return {"released": name}


@router.post(
    "/v2/models/{model}/stream/score", summary="Report accuracy", responses=openapi.ANSWERS, openapi_extra=openapi.SCORE
)
async def score_stream(request: Request, model: str) -> dict[str, Any]:
    """How many of a stream's answers turned out right, where labels come later; shown, never learned from."""
    service, served, name = _settled(request)
    stream = manage.known(service, served, name)
    body = await read_body(request, service.settings.limits)
    manage.score(stream, _numbers(body))
    return {"scored": stream.counts.scored, "correct": stream.counts.correct}


def _numbers(body: bytes) -> dict[str, int]:
    try:
        given = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise bad(f"the request is not JSON: {str(error)[:120]}") from error
    names = {"correct", "total", "reference_correct", "reference_total"}
    if not isinstance(given, dict) or not {"correct", "total"} <= given.keys() <= names:
        raise bad("expected an object with correct and total, and reference_correct and reference_total if known")
    if any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 2**31 for n in given.values()):
        raise bad("counts must be whole numbers from 0 to 2**31 - 1")
    for part, whole in (("correct", "total"), ("reference_correct", "reference_total")):
        if given.get(part, 0) > given.get(whole, 0):
            raise bad(f"{part} must not be larger than {whole}")
    return given
