"""What the library's guard tells in a step, as events."""

from collections.abc import Iterator, Mapping
from typing import Any

EVENTS = ("fallback", "recovered", "rollback")
_TOLD = ("agreement", "estimated_accuracy", "source_accuracy")


def guard_events(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events between two steps of one stream: the source took over, gave back, or the stream was rolled back.

    >>> list(guard_events({"guard": 0.0, "rollbacks": 0.0}, {"guard": 1.0, "rollbacks": 0.0, "agreement": 0.2}))
    [('fallback', {'agreement': 0.2})]
    """
    known = {name: after[name] for name in _TOLD if name in after}
    falls, fell = bool(after.get("guard")), bool(before.get("guard"))
    if falls != fell:
        yield ("fallback" if falls else "recovered"), known
    if (after.get("rollbacks") or 0) > (before.get("rollbacks") or 0):
        yield "rollback", known
