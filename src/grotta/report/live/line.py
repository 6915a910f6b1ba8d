"""The progress of one cell on stderr: a line that updates in place on a terminal, one line per domain elsewhere."""

import time
from math import isnan
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from grotta.bench.events import Progress


class ProgressLine:
    """Call it with every :class:`Progress` of a cell."""

    def __init__(self, label: str, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._moving = console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = RichProgress(*columns, console=console, transient=True, disable=not self._moving)
        self._label = label
        self._task = self._bar.add_task(label, total=None)
        self._last: Progress | None = None
        self._first = 0
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the moving line, or print the plain one of the last domain."""
        self._bar.stop()
        self._say_domain()

    def __call__(self, progress: Progress) -> None:
        if self._last is None:
            self._first, self._start = progress.images, time.monotonic()
        elif progress.domain != self._last.domain:
            self._say_domain()
        self._last = progress
        text = f"{self._label} {describe(progress, self._speed())}"
        self._bar.update(self._task, description=text, completed=progress.images, total=progress.total)

    def _speed(self) -> float:
        seen = 0 if self._last is None else self._last.images - self._first
        return seen / max(time.monotonic() - self._start, 1e-9)

    def _say_domain(self) -> None:
        if self._last is not None and not self._moving:
            line = f"{self._label} {describe(self._last, self._speed())}"
            self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)


def describe(progress: Progress, speed: float) -> str:
    """A progress in a few words: accumulated error, the current domain's, images per second.

    >>> describe(Progress(images=200, wrong=30, total=400, domain="fog", domain_images=100, domain_wrong=20), 512)
    'error 15.00 % of all images so far, fog 20.00 %, 512 images/s'
    >>> describe(Progress(200, 0, 400, "gate", 200, 0, unknown=200, domain_unknown=200), 512)
    '200 of 400 images without labels, gate, 512 images/s'
    """
    if isnan(progress.error):
        return f"{progress.images} of {progress.total} images without labels, {progress.domain}, {speed:.0f} images/s"
    domain = progress.domain + ("" if isnan(progress.domain_error) else f" {progress.domain_error:.2f} %")
    return f"error {progress.error:.2f} % of all images so far, {domain}, {speed:.0f} images/s"
