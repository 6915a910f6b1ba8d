"""What a client is told when its request is not served."""

from collections.abc import Mapping


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that gets the HTTP ``status`` and ``{"error": reason}`` instead of an answer; nothing has changed.

    >>> str(Refused(400, "shape must be a list"))
    'shape must be a list'
    """

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = dict(headers or {})


def bad(reason: str) -> Refused:
    """A request that can never be served as it is."""
    return Refused(400, reason)


def later(reason: str, seconds: int = 1) -> Refused:
    """A request that may be repeated after some seconds."""
    return Refused(503, reason, {"Retry-After": str(seconds)})
