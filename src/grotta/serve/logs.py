"""Structured logs: one JSON object or one plain line for each event, on standard error."""

import json
import logging
import sys
import time
from collections import deque
from typing import Any

logger = logging.getLogger("grotta.serve")
_OWN = "fields"


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event and the fields of the event."""
        values: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _OWN, {}),
        }
        if record.exc_info:
            values["error"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


class PlainLines(logging.Formatter):
    """A record as one line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event and ``key=value`` for each field."""
        fields = " ".join(f"{key}={value}" for key, value in getattr(record, _OWN, {}).items())
        text = f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {record.levelname.lower():7} "
        text += f"{record.getMessage()} {fields}".rstrip()
        return text + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up(form: str, level: str) -> None:
    """Send the server's log, and uvicorn's, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else PlainLines())
    for name in ("grotta.serve", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel("WARNING")


class Events:
    """What happened lately to the streams: in the log, and kept for the page.

    >>> events = Events()
    >>> events.note("reset", model="m", stream="7")
    >>> events.latest()[0]["event"]
    'reset'
    """

    def __init__(self, server: str = "", kept: int = 200) -> None:
        self.where: dict[str, Any] = {"server": server} if server else {}  # which of those that share a state folder
        self._kept: deque[dict[str, Any]] = deque(maxlen=kept)

    def note(self, event: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """Write ``event`` to the log and keep it."""
        logger.log(level, event, extra={_OWN: fields})
        self._kept.append({"time": time.time(), "event": event, **fields})

    def of(self, stream: tuple[str, str], event: str, *, level: int = logging.INFO, **fields: Any) -> None:
        """Note what happened to ``stream``, a model's name and its own."""
        self.note(event, level=level, model=stream[0], stream=stream[1], **self.where, **fields)

    def latest(self, model: str | None = None, stream: str | None = None) -> list[dict[str, Any]]:
        """What was kept, newest first; of one stream if asked."""
        found = reversed(list(self._kept))
        return [e for e in found if (model is None or e.get("model") == model) and stream in (None, e.get("stream"))]


def log_request(**fields: Any) -> None:
    """One line for an answered request."""
    logger.info("request", extra={_OWN: fields})
