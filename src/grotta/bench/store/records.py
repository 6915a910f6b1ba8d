"""What a cell records: one row per batch and one prediction per image, in preallocated arrays."""

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
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
UNKNOWN = np.iinfo(np.uint16).max  # the label of an image without one
# Of recorded streams alone.
RECORDED_BATCH_COLUMNS = {
    "agreement": np.float32,  # share of predictions that are the source network's; NaN where there are labels
    "confidence": np.float32,  # mean of the largest probabilities; the plainest estimate of accuracy without labels
    "estimated_accuracy": np.float32,  # by the method itself, without labels
}
RECORDED_IMAGE_COLUMNS = {"time": np.int64}  # seconds since 1970-01-01, NO_TIME if unknown
NO_TIME = np.iinfo(np.int64).min


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

    def __init__(self, batches: int, images: int, *, recorded: bool = False) -> None:
        rows = BATCH_COLUMNS | (RECORDED_BATCH_COLUMNS if recorded else {})
        cells = IMAGE_COLUMNS | (RECORDED_IMAGE_COLUMNS if recorded else {})
        self._rows = {name: np.zeros(batches, kind) for name, kind in rows.items()}
        self._cells = {name: np.zeros(images, kind) for name, kind in cells.items()}
        self.batches = 0
        self.images = 0

    def add(
        self,
        info: StepInfo | None,
        *,
        domain: int,
        period: int,
        predictions: Column,
        labels: Column,
        times: Column | None = None,
        agreement: float | None = None,
    ) -> None:
        """Record one step: what it saw and did, ``predictions`` (B,) and ``labels`` (B,), -1 where unknown.

        ``times`` (B,) in seconds and ``agreement`` with the source network are of recorded streams.
        """
        numbers = {} if info is None else info.as_dict()
        row = {
            "batch": self.batches,
            "domain": domain,
            "period": period,
            "size": len(labels),
            "errors": ((predictions != labels) & (labels >= 0)).sum(),
            "agreement": agreement,
            **{
                name: numbers.get(name)
                for name in ("zeta", "lam", "loss", "entropy", "bank_size", "confidence", "estimated_accuracy")
            },
        }
        for name, column in self._rows.items():
            column[self.batches] = np.nan if row[name] is None else row[name]
        span = slice(self.images, self.images + len(labels))
        self._cells["predictions"][span] = predictions
        self._cells["labels"][span] = np.where(labels < 0, UNKNOWN, labels)
        if times is not None:
            self._cells["time"][span] = times
        self.batches, self.images = self.batches + 1, span.stop

    @property
    def domain(self) -> int:
        """The domain of the last batch."""
        return int(self._rows["domain"][max(self.batches - 1, 0)])

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
        return int(wrong({name: self._cells[name][span] for name in IMAGE_COLUMNS}).sum())

    def unknown_since(self, image: int) -> int:
        """How many images have no label, from the ``image``-th of the stream on."""
        return int((self._cells["labels"][image : self.images] == UNKNOWN).sum())


def to_bytes(columns: Mapping[str, Column]) -> bytes:
    """``columns`` as an uncompressed npz file: the same bytes for the same columns, wherever they are written."""
    buffer = io.BytesIO()
    np.savez(buffer, **columns)  # type: ignore[arg-type]  # numpy's stub mistakes the names for its own options
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
    ends = np.cumsum(list(lengths.values()))
    spans = {name: slice(end - length, end) for (name, length), end in zip(lengths.items(), ends)}
    return {name: total_error({key: columns[key][span] for key in IMAGE_COLUMNS}) for name, span in spans.items()}


def wrong(columns: Mapping[str, Column]) -> Column:
    """Whether each prediction is wrong (images,); False where the label is unknown."""
    missed: Column = (columns["predictions"] != columns["labels"]) & (columns["labels"] != UNKNOWN)
    return missed


def total_error(columns: Mapping[str, Column]) -> float:
    """The error in per cent over all images with a label; NaN if none has one."""
    known = int((columns["labels"] != UNKNOWN).sum())
    return 100.0 * int(wrong(columns).sum()) / known if known else math.nan


def measures(columns: Mapping[str, Column], class_names: Sequence[str]) -> dict[str, float]:
    """What is known of a stream in which no image has a label; nothing if some have.

    >>> columns = {"labels": np.array([UNKNOWN]), "predictions": np.array([1]), "size": np.array([1])}
    >>> measures(columns | {"agreement": np.array([1.0]), "entropy": np.array([0.25])}, ["cat", "dog"])
    {'agreement': 1.0, 'entropy': 0.25, 'class cat': 0.0, 'class dog': 1.0}
    """
    if (columns["labels"] != UNKNOWN).any():
        return {}
    weights = columns["size"] / columns["size"].sum()
    known = [name for name in ("agreement", "entropy", "confidence", "estimated_accuracy") if name in columns]
    means = {name: float((columns[name] * weights).sum()) for name in known}
    counts = np.bincount(columns["predictions"], minlength=len(class_names)) / len(columns["predictions"])
    mix = {f"class {name}": float(share) for name, share in zip(class_names, counts)}
    return {name: value for name, value in means.items() if math.isfinite(value)} | mix
