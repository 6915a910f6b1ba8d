"""What the OpenAPI document says of bodies and answers that the framework cannot see."""

from typing import Any

from grotta.serve.protocol.request import CLASSES, IMAGE_TYPES, INPUT, PROBABILITIES

_ERROR_BODY = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
    "additionalProperties": False,
}
_REASONS = {
    400: "malformed request; the reason says what is wrong",
    401: "no valid bearer token",
    403: "not allowed here",
    404: "no such model or stream",
    405: "no such method",
    409: "the saved state does not fit the model that is served",
    413: "too large",
    415: "a content type or encoding that is not accepted",
    421: "addressed by a name that this server does not answer to",
    422: "malformed request",
    429: "too many streams",
    503: "try again after Retry-After seconds",
    507: "the state folder is full",
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": _ERROR_BODY}}}
    for status, text in _REASONS.items()
}
_SCALAR = {"type": ["string", "number", "boolean"]}
_PARAMETERS: dict[str, Any] = {"type": "object", "additionalProperties": _SCALAR}
_TENSOR: dict[str, Any] = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "datatype": {"type": "string"},
        "parameters": _PARAMETERS,
        "data": {"type": "array"},
    },
}
_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "parameters": {
            "type": "object",
            "properties": {
                "sequence_id": {"type": ["integer", "string"], "description": "the stream; none: the default one"},
                "sequence_start": {"type": "boolean", "description": "begin the stream anew"},
                "sequence_end": {"type": "boolean", "description": "save the stream and free its memory"},
                "wait": {"type": "boolean", "description": "learn before answering, as the library does"},
                "binary_data_output": {"type": "boolean"},
            },
            "additionalProperties": _SCALAR,
        },
        "inputs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                **_TENSOR,
                "properties": {
                    **_TENSOR["properties"],
                    "name": {"const": INPUT},
                    "datatype": {"enum": list(IMAGE_TYPES)},
                    "shape": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 1},
                        "minItems": 4,
                        "maxItems": 4,
                    },
                },
            },
        },
        "outputs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"enum": [PROBABILITIES, CLASSES]}, "parameters": _PARAMETERS},
            },
        },
    },
}
_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["model_name", "outputs"],
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "parameters": _PARAMETERS,
        "outputs": {"type": "array", "items": _TENSOR},
    },
}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def _in(place: str, name: str, schema: dict[str, Any], text: str, *, required: bool = False) -> dict[str, Any]:
    return {"in": place, "name": name, "schema": schema, "description": text, "required": required}


_HEADER = _in("header", "X-Grotta-Stream", {"type": "string", "maxLength": 128}, "the stream, for proxies")
_LENGTH = _in(
    "header", "Inference-Header-Content-Length", {"type": "integer", "minimum": 2}, "bytes of JSON before raw tensors"
)
_FLAG = {"type": "boolean"}
_NAME = _in("query", "name", {"type": "string", "minLength": 1, "maxLength": 128}, "the stream", required=True)
INFER: dict[int | str, dict[str, Any]] = {
    **ANSWERS,
    200: {
        "description": "probabilities",
        "content": {"application/json": {"schema": _ANSWER}, "application/octet-stream": _BINARY},
    },
}
BODY: dict[str, Any] = {
    "parameters": [
        _HEADER,
        _LENGTH,
        _in("query", "wait", _FLAG, "learn before answering"),
        _in("query", "stream", {"type": "string", "maxLength": 128}, "the stream of a picture"),
        _in("query", "start", _FLAG, "begin the stream of a picture anew"),
        _in("query", "end", _FLAG, "save the stream of a picture and free its memory"),
        _in("query", "top", {"type": "integer", "minimum": 0}, "name the best classes of a picture, this many"),
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _REQUEST},
            "application/octet-stream": _BINARY,
            "image/jpeg": _BINARY,
            "image/png": _BINARY,
        },
    },
}
FILE: dict[int | str, dict[str, Any]] = {
    **ANSWERS,
    200: {"description": "a safetensors file", "content": {"application/octet-stream": _BINARY}},
}
NAMED: dict[str, Any] = {"parameters": [_NAME]}
PAGE: dict[str, Any] = {"parameters": [_in("query", "offset", {"type": "integer", "minimum": 0}, "names to leave out")]}
UPLOAD: dict[str, Any] = {
    **NAMED,
    "requestBody": {"required": True, "content": {"application/octet-stream": _BINARY}},
}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
SCORE: dict[str, Any] = {
    **NAMED,
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["correct", "total"],
                    "additionalProperties": False,
                    "properties": dict.fromkeys(("correct", "total", "reference_correct", "reference_total"), _COUNT),
                }
            }
        },
    },
}
