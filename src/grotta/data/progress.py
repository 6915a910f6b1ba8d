"""Progress of a slow operation: a bar on a terminal, plain lines elsewhere, always on stderr."""

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


@contextlib.contextmanager
def progress(label: str, total: int | None, *, unit: str = "images", done: int = 0) -> Iterator[Advance]:
    """Yield ``advance(n)``, to be called after every ``n`` units; ``total`` may be unknown.

    >>> with progress("Counting", 3, unit="sheep") as advance:
    ...     advance(3)
    """
    if not sys.stderr.isatty():
        size = "" if total is None else f" ({_quantity(total, unit)})"
        print(f"{label}{size}", file=sys.stderr, flush=True)
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total, completed=done)
        yield lambda count: bar.advance(task, count)


def _quantity(total: int, unit: str) -> str:
    return f"{total / 1e6:.1f} MB" if unit == "bytes" else f"{total} {unit}"
