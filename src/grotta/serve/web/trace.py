"""W3C trace context: a request that belongs to a trace says so in its log line and in its answer."""

import re
import secrets

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def continue_trace(traceparent: str | None) -> tuple[str, str]:
    """Trace id and the ``traceparent`` of our own span, in the client's trace if it sent a valid one.

    >>> continue_trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")[0]
    '0af7651916cd43dd8448eb211c80319c'
    """
    trace, flags = secrets.token_hex(16), "00"
    match = _FORM.fullmatch(traceparent or "")
    if match and _is_valid(*match.groups()):
        trace, flags = match[2], match[4]
    return trace, f"00-{trace}-{secrets.token_hex(8)}-{flags}"


def _is_valid(version: str, trace: str, parent: str, _: str, rest: str | None) -> bool:
    if version == "ff" or (version == "00" and rest):
        return False
    return set(trace) != {"0"} and set(parent) != {"0"}
