"""Reading requests, never more of them than is allowed."""

from fastapi import Request

from grotta.serve.errors import Refused, bad
from grotta.serve.limits import Limits
from grotta.serve.names import stream_name
from grotta.serve.protocol.request import inflate

STREAM_HEADER = "x-grotta-stream"


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body, decompressed; 413 as soon as it is known to be too long."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:20]) > limits.body_bytes:
        raise Refused(413, f"the body has {declared[:20]} bytes, at most {limits.body_bytes} are accepted")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limits.body_bytes:
            raise Refused(413, f"the body has more than {limits.body_bytes} bytes")
        parts.append(part)
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    return body if encoding in ("", "identity") else inflate(body, encoding, limits)


def named_in_header(request: Request, limits: Limits) -> str | None:
    """The stream that ``X-Grotta-Stream`` names: proxies route by it, since they do not read bodies."""
    value = request.headers.get(STREAM_HEADER)
    if value is None:
        return None
    try:
        return stream_name(value.encode("latin-1").decode(), limits.name_length)
    except UnicodeDecodeError:
        raise bad(f"{STREAM_HEADER} must be UTF-8") from None


def query_flag(request: Request, name: str) -> bool:
    """A flag in the address: ``?wait=true``."""
    value = request.query_params.get(name, "false")
    if value not in ("true", "false"):
        raise bad(f"{name} must be true or false, got {value[:40]!r}")
    return value == "true"


def query_number(request: Request, name: str) -> int:
    """A whole number in the address, 0 if it is not there: ``?top=3``."""
    value = request.query_params.get(name, "0")
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise bad(f"{name} must be a whole number, got {value[:40]!r}")
    return int(value)


def named_in_query(request: Request, limits: Limits) -> str:
    """The stream that ``?name=`` or the header names, for those who manage it."""
    value = request.query_params.get("name")
    name = named_in_header(request, limits) if value is None else stream_name(value, limits.name_length)
    if name is None:
        raise bad("name must be given: ?name=STREAM")
    return name
