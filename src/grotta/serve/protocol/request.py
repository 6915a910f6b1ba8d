"""An inference request of the Open Inference Protocol v2, from bytes to images: pure functions, nothing is changed."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pydantic_core

from grotta.methods.inputs import OVERSHOOT
from grotta.serve.errors import Refused, bad
from grotta.serve.limits import Limits
from grotta.serve.names import stream_name
from grotta.serve.protocol.tensors import Array, check_shape, from_json, from_raw, wire_type

INPUT = "images"
PROBABILITIES, CLASSES = "probabilities", "classes"
OUTPUTS = (PROBABILITIES, CLASSES)
IMAGE_TYPES = ("UINT8", "FP32", "FP16", "FP64")
_LISTED = frozenset({"inputs", "outputs", "parameters", "id"})


@dataclass(frozen=True)
class OutputWish:
    """One output that a client asks for."""

    name: str = PROBABILITIES
    binary: bool = False
    top: int = 0  # of the classification extension: the best classes as "score:index:label"


@dataclass(frozen=True)
class InferRequest:
    """What a client wants: images (B, C, H, W), uint8 or float32, the stream they belong to, and the outputs."""

    images: Array
    id: str | None = None
    stream: str | None = None
    start: bool = False
    end: bool = False
    wait: bool = False
    outputs: tuple[OutputWish, ...] = (OutputWish(),)
    parameters: Mapping[str, Any] = field(default_factory=dict)


def parse_infer(body: bytes, header_length: str | None, shape: tuple[int, ...], limits: Limits) -> InferRequest:
    """The request in ``body``: JSON, and raw tensors behind it if ``header_length`` tells where they begin.

    ``shape`` is (C, H, W) of the model's images.

    >>> body = b'{"inputs": [{"name": "images", "shape": [1, 1, 1, 2], "datatype": "UINT8", "data": [0, 255]}]}'
    >>> parse_infer(body, None, (1, 1, 2), Limits()).images.tolist()
    [[[[0, 255]]]]
    """
    cut = _header_length(header_length, len(body))
    document = _json_object(body[:cut])
    if unknown := sorted(document.keys() - _LISTED):
        raise bad(f"unknown entry {unknown[0][:40]!r}; a request has {', '.join(sorted(_LISTED))}")
    identity = document.get("id")
    if identity is not None and not isinstance(identity, str):
        raise bad("id must be a string")
    parameters = _parameters(document.get("parameters"), limits)
    images = _images(document.get("inputs"), memoryview(body)[cut:], header_length is not None, shape, limits)
    request = InferRequest(
        images=images,
        id=identity,
        wait=_flag(parameters, "wait"),
        outputs=_outputs(document.get("outputs"), _flag(parameters, "binary_data_output"), limits),
        parameters=parameters,
    )
    return _with_sequence(request, parameters, limits)


def inflate(body: bytes, encoding: str, limits: Limits) -> bytes:
    """``body`` without its ``Content-Encoding``, never larger than a plain body may be."""
    if encoding not in ("gzip", "deflate"):
        raise Refused(415, f"Content-Encoding must be gzip or deflate, got {encoding[:40]!r}")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = inflater.decompress(body, limits.body_bytes + 1)
    except zlib.error as error:
        raise bad(f"the body is not {encoding}: {error}") from error
    if len(plain) > limits.body_bytes:
        raise Refused(413, f"the decompressed body has more than {limits.body_bytes} bytes")
    if not inflater.eof:
        raise bad(f"the {encoding} body ends too early")
    return plain


def as_pixels(array: Array) -> Array:
    """Images as an adapter takes them: uint8, or float32 in [0, 1] but for what sharp resampling overshoots."""
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):
        pixels = array.astype(np.float32, copy=False)
    low, high = float(pixels.min()), float(pixels.max())  # NaN goes through both
    if not (low >= -OVERSHOOT and high <= 1 + OVERSHOOT):
        raise bad(f"floating-point images must be in [0, 1], got values from {low:.4g} to {high:.4g}")
    return pixels


def _header_length(text: str | None, size: int) -> int:
    if text is None:
        return size
    if not (text.isascii() and text.isdigit()) or len(text) > 12 or not 2 <= int(text) <= size:
        raise bad(f"Inference-Header-Content-Length must be a number from 2 to {size}, got {text[:40]!r}")
    return int(text)


def _json_object(text: bytes) -> dict[str, Any]:
    try:
        document = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise bad(f"the request is not JSON: {str(error)[:120]}") from error
    if not isinstance(document, dict):
        raise bad("the request must be a JSON object")
    return document


def _parameters(value: object, limits: Limits) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > limits.parameters:
        raise bad(f"parameters must be an object with at most {limits.parameters} entries")
    return value


def _flag(parameters: Mapping[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise bad(f"parameter {name!r} must be true or false")
    return value


def _images(inputs: object, raw: memoryview, binary: bool, shape: tuple[int, ...], limits: Limits) -> Array:
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise bad(f"inputs must be a list of one tensor, named {INPUT!r}")
    [tensor] = inputs
    if tensor.get("name") != INPUT:
        raise bad(f"the input must be named {INPUT!r}, got {str(tensor.get('name'))[:40]!r}")
    kind = wire_type(tensor.get("datatype"), IMAGE_TYPES)
    sizes = check_shape(tensor.get("shape"), most=limits.images * int(np.prod(shape)))
    if sizes[1:] != shape:
        wanted = ", ".join(["batch", *map(str, shape)])
        raise bad(f"images must have the shape [{wanted}], got {list(sizes)}")
    size = _parameters(tensor.get("parameters"), limits).get("binary_data_size")
    if size is None:
        if len(raw):
            raise bad(f"{len(raw)} bytes follow the JSON, but the input has no binary_data_size")
        return as_pixels(from_json(tensor.get("data"), kind, sizes))
    if not binary:
        raise bad("binary_data_size needs the header Inference-Header-Content-Length")
    if "data" in tensor:
        raise bad("an input has data or binary_data_size, not both")
    if isinstance(size, bool) or not isinstance(size, int) or size != len(raw):
        raise bad(f"binary_data_size is {str(size)[:20]}, but {len(raw)} bytes follow the JSON")
    return as_pixels(from_raw(raw, kind, sizes))


def _outputs(wishes: object, binary: bool, limits: Limits) -> tuple[OutputWish, ...]:
    if wishes is None:
        return (OutputWish(binary=binary),)
    if not isinstance(wishes, list) or not 1 <= len(wishes) <= len(OUTPUTS):
        raise bad(f"outputs must be a list of {' and '.join(OUTPUTS)}, or of one of them")
    parsed = tuple(_output(wish, binary, limits) for wish in wishes)
    if len({wish.name for wish in parsed}) < len(parsed):
        raise bad("each output may be asked for once")
    return parsed


def _output(wish: object, binary: bool, limits: Limits) -> OutputWish:
    if not isinstance(wish, dict) or wish.get("name") not in OUTPUTS:
        raise bad(f"an output must be an object with a name, one of {', '.join(OUTPUTS)}")
    parameters = _parameters(wish.get("parameters"), limits)
    top = parameters.get("classification", 0)
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise bad("classification must be a whole number of at least 0")
    if top and wish["name"] != PROBABILITIES:
        raise bad(f"classification is for the output {PROBABILITIES!r}")
    own = _flag(parameters, "binary_data") if "binary_data" in parameters else binary
    return OutputWish(wish["name"], own, top)


def _with_sequence(request: InferRequest, parameters: Mapping[str, Any], limits: Limits) -> InferRequest:
    start, end = _flag(parameters, "sequence_start"), _flag(parameters, "sequence_end")
    name = stream_name(parameters.get("sequence_id", 0), limits.name_length)
    return replace(request, stream=name, start=start, end=end)
