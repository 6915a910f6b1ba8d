"""Updates that come every so many samples, whatever the batches are."""

from collections.abc import Iterator


def pieces(seen: int, size: int, every: int) -> Iterator[tuple[slice, bool]]:
    """Cut a batch of ``size`` samples, ``seen`` of them before it, wherever their count is a multiple of ``every``.

    Yields the pieces in order, each with whether an update is due after it.

    >>> list(pieces(seen=60, size=10, every=8))
    [(slice(0, 4, None), True), (slice(4, 10, None), False)]
    """
    start = 0
    while start < size:
        stop = min(start + every - (seen + start) % every, size)
        yield slice(start, stop), (seen + stop) % every == 0
        start = stop
