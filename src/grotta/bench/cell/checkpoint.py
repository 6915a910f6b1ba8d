"""Where a cell that is not finished goes on.

Two files, each written at once or not at all: first the records so far, then the adapter. Since a cell is the same
whenever it runs, records never change once written; so whatever instant a kill leaves behind, the records reach at
least as far as the adapter, and its step count says how many of them to keep.

The adapter's file names the weights that it belongs to, the records' the software and the data. Whatever does not
agree with the present ones, or cannot be read, is left alone: then the cell starts from its beginning.
"""

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from grotta import methods
from grotta.bench.cell import records as rec
from grotta.bench.cell.inputs import Setting
from grotta.bench.cell.records import Records
from grotta.bench.store.results import versions, write_file

ADAPTER, RECORDS = "checkpoint.safetensors", "checkpoint.npz"
# A checkpoint may be large (a memory of photographs): it may take this share of the time at most.
SHARE_OF_TIME = 0.05


class Saver:
    """Writes checkpoints of a cell on ``setting`` into ``directory``, at least ``seconds`` apart."""

    def __init__(self, directory: Path, setting: Setting, seconds: float) -> None:
        self.directory = directory
        self.setting = setting
        self.seconds = seconds
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() >= self._next

    def save(self, adapter: methods.Adapter, records: Records) -> None:
        """Write down how far a cell has come."""
        start = time.monotonic()
        columns = records.columns()
        made = json.dumps(_origin(self.setting, adapter)).encode()
        write_file(self.directory / RECORDS, rec.to_bytes({**columns, "origin": np.frombuffer(made, np.uint8)}))
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
        found = json.loads(columns["origin"].tobytes()) if "origin" in columns else {}
        for name, value in _origin(setting, adapter).items():
            if found.get(name) != value:
                raise ValueError(f"it was written with other {name}")
        if adapter.step > len(columns["batch"]):
            raise ValueError("its records are cut short")
        if columns["domain"].max(initial=0) >= len(setting.dataset.domains):
            raise ValueError("its records are of other domains")
        records.begin_with(columns, adapter.step)
    except Exception as error:  # whatever is wrong with a checkpoint, the cell can do without
        warnings.warn(f"the checkpoint in {directory} cannot be used, the cell starts again: {error}", stacklevel=2)
        return None
    return adapter


def remove(directory: Path) -> None:
    """Remove the checkpoint of a finished cell; the adapter first, so that no half of it is taken for a whole."""
    for name in (ADAPTER, RECORDS):
        (directory / name).unlink(missing_ok=True)


def _origin(setting: Setting, adapter: methods.Adapter) -> dict[str, Any]:
    """What records were made with, as plain JSON values under names for a message."""
    return {
        "versions of the software": versions(adapter.device.type),
        "data (order or labels)": setting.stream.hash,
        "data (provenance)": setting.dataset.provenance,
        "data (images)": setting.data_fingerprint,
    }
