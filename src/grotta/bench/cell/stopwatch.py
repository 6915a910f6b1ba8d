"""How long a cell took and how much memory: numbers that are never the same twice, in a file of their own."""

import contextlib
import json
import time
from pathlib import Path

from grotta.bench.execute.process import peak_memory_mb
from grotta.bench.store.results import write_file


class Stopwatch:
    """Counts the seconds of a cell; with ``resumed``, on top of those that ``path`` has from before it was stopped."""

    def __init__(self, path: Path, *, resumed: bool) -> None:
        self.path = path
        self._before, self._peak = _earlier(path) if resumed else (0.0, 0.0)
        self._start = time.monotonic()

    def write(self, images: int) -> None:
        """Write down the numbers after ``images`` images."""
        seconds = self._before + time.monotonic() - self._start
        numbers = {
            "seconds": round(seconds, 3),
            "images_per_second": round(images / max(seconds, 1e-9), 1),
            "peak_memory_mb": round(max(self._peak, peak_memory_mb()), 1),
        }
        write_file(self.path, json.dumps(numbers).encode())


def _earlier(path: Path) -> tuple[float, float]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        numbers = json.loads(path.read_text())
        return float(numbers["seconds"]), float(numbers["peak_memory_mb"])
    return 0.0, 0.0
