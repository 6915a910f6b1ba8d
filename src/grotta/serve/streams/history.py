"""What a stream did in the last minutes, in a fixed amount of memory: for the live page."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grotta.serve.protocol.tensors import Array

SECONDS, BUCKETS, SLOTS = 2, 150, 12
_SUMS = ("images", "entropy", "confidence", "adapted", "skipped", "correct", "scored", "reference", "referenced")
_LATEST = ("agreement", "estimated_accuracy", "source_accuracy", "lag", "loss", "zeta", "bank_size")
_COLUMNS = {name: i for i, name in enumerate((*_SUMS, *_LATEST))}
FRAMES, FRAME_SIDE = 8, 64


class History:
    """Sums over intervals of two seconds, for five minutes; the classes predicted; the last frames.

    >>> history = History()
    >>> history.answered(0.0, np.array([[0.9, 0.1], [0.2, 0.8]], "f4"))
    >>> history.series(1.0)["images"][-1]
    2.0
    """

    def __init__(self) -> None:
        self._table = _unseen(BUCKETS)
        self._newest = -BUCKETS  # number of the newest interval
        self._slots: dict[int, int] = {}  # class -> column; the last one is for all classes that came too late
        self.frames: deque[tuple[float, Array, int, float]] = deque(maxlen=FRAMES)
        self.latest: dict[str, float] = {}

    def answered(self, now: float, probs: Array, frame: Array | None = None) -> None:
        """Count an answer (B, classes); ``frame`` (3, H, W) uint8 is the first of its images."""
        row = self._row(now)
        rounded = np.maximum(probs, 1e-12)
        best = probs.argmax(1)
        row[_COLUMNS["images"]] += len(probs)
        row[_COLUMNS["entropy"]] += float(-(rounded * np.log(rounded)).sum())
        row[_COLUMNS["confidence"]] += float(probs.max(1).sum())
        classes, counts = np.unique(best, return_counts=True)
        for which, count in zip(classes.tolist(), counts.tolist()):
            slot = self._slots.setdefault(which, min(len(self._slots), SLOTS - 1))
            row[len(_COLUMNS) + slot] += count
        if frame is not None:
            self.frames.append((now, _thumbnail(frame), int(best[0]), float(probs[0, best[0]])))

    def learned(self, now: float, info: Mapping[str, Any], lag: int) -> None:
        """Note a step of the learner and how many batches wait behind it."""
        row = self._row(now)
        row[_COLUMNS["adapted"]] += 1
        known = {name: info[name] for name in _LATEST if isinstance(info.get(name), int | float)}
        self.latest |= known | {"lag": lag}
        for name, value in {**known, "lag": lag}.items():
            row[_COLUMNS[name]] = value

    def skipped(self, now: float) -> None:
        """Count an answer that nothing was learned from."""
        self._row(now)[_COLUMNS["skipped"]] += 1

    def scored(self, now: float, right: Sequence[int], reference: Sequence[int] | None) -> None:
        """Note (correct, all) as the client measured it, for this stream and for a model to compare it with."""
        row = self._row(now)
        row[_COLUMNS["correct"]] += right[0]
        row[_COLUMNS["scored"]] += right[1]
        if reference is not None:
            row[_COLUMNS["reference"]] += reference[0]
            row[_COLUMNS["referenced"]] += reference[1]

    def series(self, now: float) -> dict[str, list[float | None]]:
        """Every quantity over the intervals, oldest first; None where nothing was seen."""
        table = self._until(now)
        column = {name: table[:, i] for name, i in _COLUMNS.items()}
        images = column["images"]
        found: dict[str, Array] = {
            "images": images,
            "adapted": column["adapted"],
            "skipped": column["skipped"],
            "entropy": _ratio(column["entropy"], images),
            "confidence": _ratio(column["confidence"], images),
            "accuracy": _ratio(column["correct"], column["scored"]),
            "reference": _ratio(column["reference"], column["referenced"]),
            **{name: column[name] for name in _LATEST},
        }
        rounded = {name: np.round(values.astype(np.float64), 4).tolist() for name, values in found.items()}
        return {name: [None if v != v else v for v in values] for name, values in rounded.items()}

    def classes(self, now: float, labels: Sequence[str]) -> list[dict[str, Any]]:
        """How often each class was predicted in every interval, most frequent first."""
        table = self._until(now)[:, len(_COLUMNS) :]
        names: dict[int, str] = {}
        for which, slot in self._slots.items():
            names[slot] = labels[which] if slot not in names else "other"
        rows = [{"label": name, "slot": slot, "counts": table[:, slot].tolist()} for slot, name in names.items()]
        return sorted(rows, key=lambda row: -sum(row["counts"]))

    def _until(self, now: float) -> NDArray[np.float32]:
        """A copy of the table that ends with the present interval; changes nothing, so any thread may ask."""
        newest = self._newest
        table = np.roll(self._table, -(newest % BUCKETS) - 1, axis=0)
        passed = min(BUCKETS, max(0, int(now // SECONDS) - newest))
        return np.concatenate([table[passed:], _unseen(passed)])

    def _row(self, now: float) -> NDArray[np.float32]:
        number = max(int(now // SECONDS), self._newest)
        for passed in range(max(self._newest + 1, number - BUCKETS + 1), number + 1):
            self._table[passed % BUCKETS] = _unseen(1)
        self._newest = number
        row: NDArray[np.float32] = self._table[number % BUCKETS]
        return row


def _unseen(intervals: int) -> NDArray[np.float32]:
    """Rows in which nothing has been seen: sums of nothing, and no latest value."""
    rows: NDArray[np.float32] = np.zeros((intervals, len(_COLUMNS) + SLOTS), np.float32)
    rows[:, len(_SUMS) : len(_COLUMNS)] = np.nan
    return rows


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(len(part), np.nan, np.float32), where=whole > 0)


def _thumbnail(frame: Array) -> Array:
    step = max(1, max(frame.shape[1:]) // FRAME_SIDE)
    small = frame[:, ::step, ::step]
    bytes_ = small if small.dtype == np.uint8 else (small.clip(0, 1) * 255).astype(np.uint8)
    return np.ascontiguousarray(bytes_.transpose(1, 2, 0))
