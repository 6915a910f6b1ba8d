"""What the library's guard tells in a step, as events."""

from collections.abc import Iterator, Mapping
from typing import Any

# Numbers in StepInfo that count what the guard did: a count that grew is an event.
COUNTERS = {"guard_fallbacks": "fallback", "guard_rollbacks": "rollback", "guard_resets": "reset"}


def guard_events(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events between two steps of one stream.

    >>> list(guard_events({"guard_rollbacks": 0}, {"guard_rollbacks": 1, "agreement": 0.2}))
    [('rollback', {'agreement': 0.2})]
    """
    known = {name: after[name] for name in ("agreement", "estimated_accuracy") if name in after}
    for name, event in COUNTERS.items():
        if (after.get(name) or 0) > (before.get(name) or 0):
            yield event, known
