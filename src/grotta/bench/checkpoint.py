"""Where a cell that is not finished goes on.

Two files, each written at once or not at all: first the records so far, then the adapter. Since a cell is the same
whenever it runs, records never change once written; so whatever instant a kill leaves behind, the records reach at
least as far as the adapter, and its step count says how many of them to keep.
"""

import json
import time
import warnings
from pathlib import Path

import numpy as np

from grotta import methods
from grotta.bench import records as rec
from grotta.bench.records import Records
from grotta.bench.results import versions, write_file
from grotta.bench.setting import Setting

ADAPTER, RECORDS = "checkpoint.safetensors", "checkpoint.npz"
# A checkpoint may be large (a memory of photographs): it may take this share of the time at most.
SHARE_OF_TIME = 0.05


class Saver:
    """Writes checkpoints into ``directory``, at least ``seconds`` apart."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self.directory = directory
        self.seconds = seconds
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() >= self._next

    def save(self, adapter: methods.Adapter, records: Records) -> None:
        """Write down how far a cell has come."""
        start = time.monotonic()
        software = np.frombuffer(json.dumps(versions(adapter.device.type)).encode(), np.uint8)
        write_file(self.directory / RECORDS, rec.to_bytes({**records.columns(), "versions": software}))
        adapter.save(self.directory / ADAPTER)
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / SHARE_OF_TIME if self.seconds else 0.0)


def exists(directory: Path) -> bool:
    """Whether a cell was stopped here."""
    return (directory / ADAPTER).exists()


def restore(directory: Path, setting: Setting, records: Records) -> methods.Adapter | None:
    """The adapter of the last checkpoint, after filling ``records`` up to it; None if none can be used."""
    if not exists(directory):
        return None
    try:
        adapter = methods.load(directory / ADAPTER, setting.model)
        columns = rec.read(directory / RECORDS)
        if json.loads(columns["versions"].tobytes()) != versions(adapter.device.type):
            raise ValueError("it was written by other versions of the software")
        if adapter.step > len(columns["batch"]):
            raise ValueError("its records are cut short")
    except (OSError, ValueError, KeyError, TypeError) as error:
        warnings.warn(f"the checkpoint in {directory} cannot be used, the cell starts again: {error}", stacklevel=2)
        return None
    records.begin_with(columns, adapter.step)
    return adapter


def remove(directory: Path) -> None:
    """Remove the checkpoint of a finished cell; the adapter first, so that no half of it is taken for a whole."""
    for name in (ADAPTER, RECORDS):
        (directory / name).unlink(missing_ok=True)
