"""What a cell records: one row per batch and one prediction per image, in arrays of a size known beforehand."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grotta.methods import StepInfo

Column = npt.NDArray[Any]

# Numbers that a method does not have are NaN.
BATCH_COLUMNS = {
    "batch": np.int32,  # counted from 0
    "domain": np.int16,  # index into the spec's domains, of the batch's first image
    "period": np.int32,  # counted from 0 over the whole stream, of the batch's first image
    "size": np.int32,
    "errors": np.int32,  # wrong predictions in the batch
    "zeta": np.float32,
    "lam": np.float32,
    "loss": np.float32,
    "entropy": np.float32,
    "bank_size": np.float32,
}
IMAGE_COLUMNS = {"predictions": np.uint16, "labels": np.uint16}


class Records:
    """The records of one run over a stream, filled batch by batch.

    >>> import torch
    >>> records = Records(batches=2, images=5)
    >>> info = StepInfo(step=1, batch_size=3, adapted=False)
    >>> records.add(info, domain=0, period=0, predictions=np.array([1, 2, 0]), labels=np.array([1, 2, 2]))
    >>> records.batches, records.images, records.wrong_since(0)
    (1, 3, 1)
    >>> records.columns()["errors"]
    array([1], dtype=int32)
    """

    def __init__(self, batches: int, images: int) -> None:
        self._rows = {name: np.zeros(batches, kind) for name, kind in BATCH_COLUMNS.items()}
        self._cells = {name: np.zeros(images, kind) for name, kind in IMAGE_COLUMNS.items()}
        self.batches = 0
        self.images = 0

    def add(self, info: StepInfo | None, *, domain: int, period: int, predictions: Column, labels: Column) -> None:
        """Record one step: what it saw and did, ``predictions`` (B,) and ``labels`` (B,)."""
        numbers = {} if info is None else info.as_dict()
        row = {
            "batch": self.batches,
            "domain": domain,
            "period": period,
            "size": len(labels),
            "errors": (predictions != labels).sum(),
            **{name: numbers.get(name) for name in ("zeta", "lam", "loss", "entropy", "bank_size")},
        }
        for name, column in self._rows.items():
            column[self.batches] = np.nan if row[name] is None else row[name]
        span = slice(self.images, self.images + len(labels))
        self._cells["predictions"][span] = predictions
        self._cells["labels"][span] = labels
        self.batches, self.images = self.batches + 1, span.stop

    def start_from(self, columns: Mapping[str, Column], batches: int) -> None:
        """Start from the first ``batches`` rows of ``columns``, as :meth:`columns` gave them."""
        images = int(columns["size"][:batches].sum())
        for name, column in self._rows.items():
            column[:batches] = columns[name][:batches]
        for name, column in self._cells.items():
            column[:images] = columns[name][:images]
        self.batches, self.images = batches, images

    def columns(self) -> dict[str, Column]:
        """What has been recorded so far, by column."""
        rows = {name: column[: self.batches] for name, column in self._rows.items()}
        return rows | {name: column[: self.images] for name, column in self._cells.items()}

    def wrong_since(self, image: int) -> int:
        """How many predictions were wrong, from the ``image``-th of the stream on."""
        span = slice(image, self.images)
        return int((self._cells["predictions"][span] != self._cells["labels"][span]).sum())


def to_bytes(columns: Mapping[str, Column]) -> bytes:
    """``columns`` as an uncompressed npz file: the same bytes for the same columns, wherever they are written."""
    buffer = io.BytesIO()
    np.savez(buffer, **columns)  # type: ignore[arg-type]  # numpy's stub takes the names for its own options
    return buffer.getvalue()


def read(path: Path) -> dict[str, Column]:
    """The columns in a file of records; ``ValueError`` if it is damaged."""
    content = io.BytesIO(path.read_bytes())
    try:
        with np.load(content, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if missing := (BATCH_COLUMNS | IMAGE_COLUMNS).keys() - columns.keys():
        raise ValueError(f"{path} is damaged: it has no {sorted(missing)[0]}")
    return columns


def domain_errors(columns: Mapping[str, Column], lengths: Mapping[str, int]) -> dict[str, float]:
    """The error in per cent in each domain, given how many images of the stream each has.

    >>> columns = {"predictions": np.array([0, 1, 2, 2]), "labels": np.array([0, 1, 1, 2])}
    >>> domain_errors(columns, {"fog": 2, "snow": 2})
    {'fog': 0.0, 'snow': 50.0}
    """
    wrong = columns["predictions"] != columns["labels"]
    ends = np.cumsum(list(lengths.values()))
    return {name: _percent(wrong[end - length : end]) for (name, length), end in zip(lengths.items(), ends)}


def total_error(columns: Mapping[str, Column]) -> float:
    """The error in per cent over all images."""
    return _percent(columns["predictions"] != columns["labels"])


def _percent(wrong: Column) -> float:
    return 100.0 * int(wrong.sum()) / max(len(wrong), 1)
