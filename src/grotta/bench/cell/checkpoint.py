"""The checkpoint from which an unfinished cell is resumed.

Two files, each written completely or not at all: first the records so far, then the adapter. A cell is the same
whenever it runs, so records never change once written. Whenever the process is killed, the records reach at least as
far as the adapter, and its step count says how many of them to keep.

Where every domain has its own adapter, which counts its steps from zero, the name of the file says which domain it is.

The adapter's file names the weights that it belongs to, the records' file the software and the data. A checkpoint that
does not match the current ones, or cannot be read, is not used: the cell starts from the beginning.
"""

import json
import time
import warnings
from collections.abc import Sequence
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

    def save(self, adapter: methods.Adapter, records: Records, domain: int = 0) -> None:
        """Save the progress of a cell; ``domain`` is the one that the adapter started with."""
        start = time.monotonic()
        columns = records.columns()
        made = json.dumps(_origin(self.inputs, adapter)).encode()
        write(self.directory / RECORDS, rec.to_bytes({**columns, "origin": np.frombuffer(made, np.uint8)}))
        adapter.save(self.directory / _file_of(domain))
        for earlier in _adapter_files(self.directory)[:-1]:
            earlier.unlink()
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / SHARE_OF_TIME if self.seconds else 0.0)


def exists(directory: Path) -> bool:
    """Whether a cell was stopped here."""
    return bool(_adapter_files(directory))


def restore(
    directory: Path, inputs: CellInputs, records: Records, starts: Sequence[int] = (0,)
) -> methods.Adapter | None:
    """The adapter of the last checkpoint, after filling ``records`` up to it; None if none can be used.

    ``starts`` has the number of batches before each domain that starts with a new adapter.
    """
    files = _adapter_files(directory)
    if not files:
        return None
    try:
        adapter = methods.load(files[-1], inputs.model)
        done = starts[_domain_of(files[-1])] + adapter.step
        columns = rec.read(directory / RECORDS)
        found = json.loads(columns["origin"].tobytes()) if "origin" in columns else {}
        for name, value in _origin(inputs, adapter).items():
            if found.get(name) != value:
                raise ValueError(f"it was written with other {name}")
        if done > len(columns["batch"]):
            raise ValueError("its records are truncated")
        if columns["domain"].max(initial=0) >= len(inputs.dataset.domains):
            raise ValueError("its records are of other domains")
        records.start_from(columns, done)
    except Exception as error:  # whatever is wrong with a checkpoint, the cell can run without it
        warnings.warn(f"the checkpoint in {directory} cannot be used, the cell starts again: {error}", stacklevel=2)
        return None
    return adapter


def remove(directory: Path) -> None:
    """Remove the checkpoint of a finished cell; the adapter first, so that half a checkpoint is never used."""
    for path in (*_adapter_files(directory), directory / RECORDS):
        path.unlink(missing_ok=True)


def _file_of(domain: int) -> str:
    return ADAPTER.replace(".", f"-{domain}.", 1) if domain else ADAPTER


def _domain_of(file: Path) -> int:
    return int(file.stem.partition("-")[2] or 0)


def _adapter_files(directory: Path) -> list[Path]:
    """The adapters in a directory by their domain; a kill between two writes may leave more than one."""
    return sorted(directory.glob("checkpoint*.safetensors"), key=_domain_of)


def _origin(inputs: CellInputs, adapter: methods.Adapter) -> dict[str, Any]:
    """What records were made with, as plain JSON values, with names for messages."""
    return {
        "versions of the software": versions(adapter.device.type),
        "data (order or labels)": inputs.stream.hash,
        "data (provenance)": inputs.dataset.provenance,
        "data (images)": inputs.data_fingerprint,
    }
