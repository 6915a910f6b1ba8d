"""Around every request: access, trace, metrics, one log line, and errors as ``{"error": ...}``."""

import json
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grotta.serve.errors import Refused
from grotta.serve.logs import log_request, logger
from grotta.serve.metrics import Metrics
from grotta.serve.settings import Settings
from grotta.serve.web.security import check_access
from grotta.serve.web.trace import continue_trace

_QUIET = ("/v2/health/live", "/v2/health/ready", "/metrics", "/live")


class Around:
    """ASGI middleware; the fields that a handler puts into ``scope["log"]`` are in the log line."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, headers, status = time.perf_counter(), Headers(scope=scope), 500
        trace, parent = continue_trace(headers.get("traceparent"))
        fields: dict[str, Any] = {}
        scope["log"] = fields
        sent = False

        async def pass_on(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status, sent = message["status"], True
                message["headers"] = [*message["headers"], (b"traceparent", parent.encode()), *_SAFE]
            await send(message)

        try:
            check_access(self.settings, scope["path"], headers)
            await self.app(scope, receive, pass_on)
        except Refused as refused:
            await send_error(pass_on, refused.status, str(refused), refused.headers)
        except Exception as error:
            logger.error("internal_error", exc_info=True, extra={"fields": {"trace": trace}})
            if sent:
                raise
            await send_error(pass_on, 500, f"internal error: {type(error).__name__}", {})
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.requests.labels(route, str(status)).inc()
            if not scope["path"].startswith(_QUIET):
                took = round(1000 * (time.perf_counter() - began), 2)
                log_request(method=scope["method"], route=route, status=status, ms=took, trace=trace, **fields)


_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


async def send_error(send: Send, status: int, reason: str, headers: dict[str, str]) -> None:
    """Send ``{"error": reason}``."""
    body = json.dumps({"error": reason}).encode()
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
