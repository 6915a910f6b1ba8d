"""Time and memory of a cell: numbers that differ from run to run, so they have their own file."""

import contextlib
import json
import time
from pathlib import Path

from grotta._files import write
from grotta.bench.process import peak_memory_mb


class Stopwatch:
    """Counts the seconds of a cell; if ``resumed``, on top of those in ``path`` from before it was stopped."""

    def __init__(self, path: Path, *, resumed: bool) -> None:
        self.path = path
        self._before, self._peak = _earlier(path) if resumed else (0.0, 0.0)
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


def _earlier(path: Path) -> tuple[float, float]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        numbers = json.loads(path.read_text())
        return float(numbers["seconds"]), float(numbers["peak_memory_mb"])
    return 0.0, 0.0
