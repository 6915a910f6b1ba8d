"""Time and memory of a cell: numbers that differ from run to run, so they have their own file."""

import json
import time
from pathlib import Path

from grotta._files import write
from grotta.bench.process import peak_memory_mb
from grotta.bench.store.results import read_timing


class Stopwatch:
    """Counts the seconds of a cell; if ``resumed``, on top of those in ``path`` from before it was stopped."""

    def __init__(self, path: Path, *, resumed: bool) -> None:
        self.path = path
        before = read_timing(path.parent) if resumed else {}
        self._before, self._peak = before.get("seconds", 0.0), before.get("peak_memory_mb", 0.0)
        self._start = time.monotonic()

    def write(self, images: int) -> dict[str, float]:
        """Write and return the numbers after ``images`` images."""
        seconds = self._before + time.monotonic() - self._start
        numbers = {
            "seconds": round(seconds, 3),
            "images_per_second": round(images / max(seconds, 1e-9), 1),
            "peak_memory_mb": round(max(self._peak, peak_memory_mb()), 1),
        }
        write(self.path, json.dumps(numbers).encode())
        return numbers
