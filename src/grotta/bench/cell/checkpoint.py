"""The checkpoint from which an unfinished cell is resumed.

Two files, each written completely or not at all: first the records so far, then the adapter. A cell is the same
whenever it runs, so records never change once written. Whenever a kill comes, the records reach at least as far as the
adapter, and its step count says how many of them to keep.

The adapter's file names the weights that it belongs to, the records' file the software and the data. A checkpoint that
does not match those of now, or cannot be read, is not used: the cell starts from the beginning.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from grotta import methods
from grotta._files import write
from grotta.bench.inputs.opened import CellInputs
from grotta.bench.store import records as rec
from grotta.bench.store.records import Records
from grotta.bench.store.versions import versions

ADAPTER, RECORDS = "checkpoint.safetensors", "checkpoint.npz"
# A checkpoint may be large (a memory of photographs): writing it takes at most this share of the time.
SHARE_OF_TIME = 0.05


class Saver:
    """Writes checkpoints of a cell on ``inputs`` into ``directory``, at least ``seconds`` apart."""

    def __init__(self, directory: Path, inputs: CellInputs, seconds: float) -> None:
        self.directory = directory
        self.inputs = inputs
        self.seconds = seconds
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() >= self._next

    def save(self, adapter: methods.Adapter, records: Records) -> None:
        """Save how far a cell has come."""
        start = time.monotonic()
        columns = records.columns()
        made = json.dumps(_origin(self.inputs, adapter)).encode()
        write(self.directory / RECORDS, rec.to_bytes({**columns, "origin": np.frombuffer(made, np.uint8)}))
        adapter.save(self.directory / ADAPTER)
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / SHARE_OF_TIME if self.seconds else 0.0)


def exists(directory: Path) -> bool:
    """Whether a cell was stopped here."""
    return (directory / ADAPTER).exists()


def restore(directory: Path, inputs: CellInputs, records: Records) -> methods.Adapter | None:
    """The adapter of the last checkpoint, after filling ``records`` up to it; None if none can be used."""
    if not exists(directory):
        return None
    try:
        adapter = methods.load(directory / ADAPTER, inputs.model)
        columns = rec.read(directory / RECORDS)
        found = json.loads(columns["origin"].tobytes()) if "origin" in columns else {}
        for name, value in _origin(inputs, adapter).items():
            if found.get(name) != value:
                raise ValueError(f"it was written with other {name}")
        if adapter.step > len(columns["batch"]):
            raise ValueError("its records are cut short")
        if columns["domain"].max(initial=0) >= len(inputs.dataset.domains):
            raise ValueError("its records are of other domains")
        records.start_from(columns, adapter.step)
    except Exception as error:  # whatever is wrong with a checkpoint, the cell can run without it
        warnings.warn(f"the checkpoint in {directory} cannot be used, the cell starts again: {error}", stacklevel=2)
        return None
    return adapter


def remove(directory: Path) -> None:
    """Remove the checkpoint of a finished cell; the adapter first, so that half a checkpoint is never used."""
    for name in (ADAPTER, RECORDS):
        (directory / name).unlink(missing_ok=True)


def _origin(inputs: CellInputs, adapter: methods.Adapter) -> dict[str, Any]:
    """What records were made with, as plain JSON values, named for a message."""
    return {
        "versions of the software": versions(adapter.device.type),
        "data (order or labels)": inputs.stream.hash,
        "data (provenance)": inputs.dataset.provenance,
        "data (images)": inputs.data_fingerprint,
    }
