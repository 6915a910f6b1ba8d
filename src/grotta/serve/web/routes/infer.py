"""The Open Inference Protocol v2 over HTTP: health, metadata, inference."""

import time
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from grotta._version import __version__
from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused, bad, later
from grotta.serve.limits import Limits
from grotta.serve.names import stream_name
from grotta.serve.protocol.pictures import MEDIA_TYPES, decode_picture
from grotta.serve.protocol.request import CLASSES, INPUT, PROBABILITIES, InferRequest, OutputWish, parse_infer
from grotta.serve.protocol.response import HEADER_LENGTH, encode_infer
from grotta.serve.web import openapi
from grotta.serve.web.address import VERSION, model_of, service_of
from grotta.serve.web.body import named_in_header, query_flag, query_number, read_body

EXTENSIONS = ["sequence", "sequence(string_id)", "binary_tensor_data", "parameters", "classification"]
_LARGE = 1 << 18  # bytes of JSON that would hold up other requests while they are parsed


router = APIRouter(tags=["Open Inference Protocol"])


@router.get("/v2", summary="What this server is", responses=openapi.ANSWERS)
async def server_metadata() -> dict[str, Any]:
    """Name, version and the protocol's extensions that it has."""
    return {"name": "grotta", "version": __version__, "extensions": EXTENSIONS}


@router.get("/v2/health/live", summary="Whether the process runs")
async def live() -> dict[str, bool]:
    """Always true, if it answers at all."""
    return {"live": True}


@router.get("/v2/health/ready", summary="Whether requests are served", responses=openapi.ANSWERS)
async def ready(request: Request) -> dict[str, bool]:
    """503 while shutting down, or while the state folder may belong to another."""
    service = service_of(request)
    if service.draining:
        raise later("the server is shutting down", 5)
    service.ownership.check()
    return {"ready": True}


@router.get("/v2/models/{model}", summary="A model's inputs and outputs", responses=openapi.ANSWERS)
@router.get("/v2/models/{model}/versions/{version}", include_in_schema=False)
async def model_metadata(request: Request, model: str) -> dict[str, Any]:
    """Tensors as the protocol names them, and the names of the classes."""
    served = model_of(request)
    settings, classes = served.settings, len(served.labels)
    return {
        "name": served.name,
        "versions": [VERSION],
        "platform": "grotta_pytorch",
        "inputs": [{"name": INPUT, "datatype": "FP32", "shape": [-1, *served.shape]}],
        "outputs": [
            {"name": PROBABILITIES, "datatype": "FP32", "shape": [-1, classes]},
            {"name": CLASSES, "datatype": "INT64", "shape": [-1]},
        ],
        "parameters": {"method": settings.method, "preset": served.preset, "labels": list(served.labels)},
    }


@router.get("/v2/models/{model}/ready", summary="Whether a model is served", responses=openapi.ANSWERS)
@router.get("/v2/models/{model}/versions/{version}/ready", include_in_schema=False)
async def model_ready(request: Request, model: str) -> dict[str, Any]:
    """404 if it is not."""
    served = model_of(request)
    await ready(request)
    return {"name": served.name, "ready": True}


@router.post(
    "/v2/models/{model}/infer", summary="Answer first, adapt after", responses=openapi.INFER, openapi_extra=openapi.BODY
)
@router.post("/v2/models/{model}/versions/{version}/infer", include_in_schema=False)
async def infer(request: Request, model: str) -> Response:
    """Images in, probabilities out; the stream then learns from them.

    JSON, JSON with raw tensors behind it (``Inference-Header-Content-Length``), or one JPEG or PNG picture.
    """
    service, served = service_of(request), model_of(request)
    limits = service.settings.limits
    body = await read_body(request, limits)
    began = time.perf_counter()
    wanted = await _parse(request, body, served, limits)
    probs, stream = await service.infer(served, wanted)
    head: dict[str, Any] = {"model_name": served.name, "model_version": VERSION}
    if wanted.id is not None:
        head["id"] = wanted.id
    head["parameters"] = {"sequence_id": stream.name, "step": stream.step}
    content, headers = encode_infer(head, probs, wanted.outputs, served.labels)
    service.metrics.answer.labels(served.name).observe(time.perf_counter() - began)
    request.scope["log"] |= {
        "model": served.name,
        "stream": stream.name,
        "images": len(probs),
        "step": stream.step,
        **service.events.where,
        "epoch": stream.epoch,
    }
    return Response(content, headers=headers)


async def _parse(request: Request, body: bytes, model: ServedModel, limits: Limits) -> InferRequest:
    media_type = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if media_type in MEDIA_TYPES:
        images = await run_in_threadpool(decode_picture, body, media_type, model.shape, limits)
        wishes = (OutputWish(top=query_number(request, "top")),)
        start, end = query_flag(request, "start"), query_flag(request, "end")
        parsed = InferRequest(images, start=start, end=end, outputs=wishes)
        if "stream" in request.query_params:
            parsed = replace(parsed, stream=stream_name(request.query_params["stream"], limits.name_length))
    elif media_type in ("application/json", "application/octet-stream", "text/plain", ""):
        length = request.headers.get(HEADER_LENGTH)
        arguments = (body, length, model.shape, limits)
        large = len(body) > _LARGE and length is None
        parsed = await run_in_threadpool(parse_infer, *arguments) if large else parse_infer(*arguments)
    else:
        raise Refused(415, f"Content-Type must be JSON, a JPEG or a PNG picture, got {media_type[:60]!r}")
    if query_flag(request, "wait"):
        parsed = replace(parsed, wait=True)
    return _with_header(parsed, named_in_header(request, limits))


def _with_header(parsed: InferRequest, header: str | None) -> InferRequest:
    """The stream may also be named in a header, for proxies; the two must not differ."""
    if header is None:
        return parsed
    if parsed.stream is not None and header != parsed.stream:
        raise bad("the stream in the header X-Grotta-Stream is not the one in the request")
    return replace(parsed, stream=parsed.stream or header)
