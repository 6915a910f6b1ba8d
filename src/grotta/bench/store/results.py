"""A finished cell: its values, how they are written, and how they are read and checked.

``<out>/cells/<id>/`` holds ``spec.json``; while the cell runs, a checkpoint; ``records.npz`` and ``timing.json``; and,
written last, ``result.json``: a cell is finished if that file is present and intact. Nothing in it or in the records
depends on when, where or how fast the cell ran.
"""

import functools
import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grotta.bench.spec import CellSpec
from grotta.bench.store import records as rec
from grotta.bench.store.records import Column

FORMAT = 1
SPEC, RECORDS, TIMING, RESULT = "spec.json", "records.npz", "timing.json", "result.json"


class DamagedCellError(ValueError):
    """The files of a finished cell are damaged or do not belong together; the cell does not count."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """A finished cell.

    Attributes:
        spec: what was run; with the label that was asked for, or that of the run that made it.
        model: the network, with the name of its weights.
        model_fingerprint: a digest of its weights.
        stream_hash: of the stream; equal for all methods on the same stream.
        data_fingerprint: a digest of the images; empty in older results, which have none.
        method_fingerprint: a digest of the method's code; empty in older results.
        error: in per cent, over all images.
        domain_errors: in per cent, by domain, in stream order.
        images: how many the stream had.
        measures: what can be measured without labels, if the stream has none: ``agreement`` with the source network,
            ``entropy``, ``estimated_accuracy`` if the method gives one, and the share of each class as ``class NAME``.
        classes: how many the data set has.
        provenance: of the data: ``published``, ``regenerated`` or ``original``.
        versions: of the software, and the kind of device.
        warnings: what a reader of the numbers should know.
        distinct_images: how many different images the stream showed, for original pictures of which some came more
            than once; else 0.
        directory: where the cell's files are.
        seconds, images_per_second, peak_memory_mb: NaN if unknown; they differ from run to run.
    """

    spec: CellSpec
    model: str
    model_fingerprint: str
    stream_hash: str
    error: float
    domain_errors: dict[str, float]
    images: int
    classes: int
    provenance: str
    versions: dict[str, str]
    data_fingerprint: str = ""
    method_fingerprint: str = ""
    measures: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    distinct_images: int = 0
    directory: Path = field(default=Path(), compare=False)
    seconds: float = field(default=math.nan, compare=False)
    images_per_second: float = field(default=math.nan, compare=False)
    peak_memory_mb: float = field(default=math.nan, compare=False)

    @functools.cached_property
    def records(self) -> dict[str, Column]:
        """Columns of :mod:`grotta.bench.store.records`: one row per batch; ``predictions``, ``labels`` per image."""
        return rec.read(self.directory / RECORDS)

    @property
    def predictions(self) -> Column:
        """The predicted classes (images,), in stream order."""
        return self.records["predictions"]

    @property
    def labels(self) -> Column:
        """The true classes (images,), in stream order."""
        return self.records["labels"]

    def accumulated_error(self) -> Column:
        """The error in per cent over all images up to and with each batch (batches,)."""
        wrong, seen = np.cumsum(self.records["errors"]), np.cumsum(self.records["size"])
        accumulated: Column = 100.0 * wrong / seen
        return accumulated


def cell_directory(out: Path, spec: CellSpec) -> Path:
    """Where the files of a cell are."""
    return out / "cells" / spec.id


def load_results(out: str | Path, known: Iterable[CellResult] = ()) -> list[CellResult]:
    """All finished cells in ``out``, ordered by id; a damaged one is left out with a warning.

    Those of ``known`` are taken as they are and not read from disk.
    """
    at_hand = {result.spec.id: result for result in known}
    results = []
    for directory in sorted((Path(out) / "cells").glob("*/")):
        try:
            result = at_hand.get(directory.name) or read_result(directory)
        except DamagedCellError as error:
            warnings.warn(f"{error}; it does not count, and the next bench runs it again", stacklevel=2)
        else:
            results += [] if result is None else [result]
    return results


def read_result(directory: Path) -> CellResult | None:
    """The finished cell in ``directory``, or None if it has not finished.

    Raises:
        DamagedCellError: there is a result, but it or its records are damaged.
    """
    try:
        content = json.loads((directory / RESULT).read_text())
        spec = CellSpec.from_dict(content.pop("spec"))
        digest, version = content.pop("records"), content.pop("format")
        found = hashlib.sha256((directory / RECORDS).read_bytes()).hexdigest()
        if version != FORMAT or spec.id != directory.name or found != digest:
            raise ValueError("its parts do not belong together")
        _check_texts(content)
        _check_numbers(content, spec, rec.read(directory / RECORDS))
        content["error"] = _with_nan(content["error"])
        content["domain_errors"] = {name: _with_nan(error) for name, error in content["domain_errors"].items()}
        content["warnings"] = tuple(content["warnings"])
        return CellResult(spec=_labelled(spec, directory), directory=directory, **content, **read_timing(directory))
    except FileNotFoundError as error:
        if not (directory / RESULT).exists():
            return None
        raise DamagedCellError(f"the cell in {directory} is damaged: {Path(error.filename).name} is missing") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedCellError(f"the cell in {directory} is damaged: {error}") from error


_TEXTS = ("model", "model_fingerprint", "stream_hash", "data_fingerprint", "method_fingerprint", "provenance")
_VALUES = (*_TEXTS[:-1], "error", "domain_errors", "images", "classes", "provenance", "versions")


def result_values(result: CellResult) -> dict[str, Any]:
    """A result as plain JSON values, without what depends on when and where it was made or on its label."""
    spec = {key: value for key, value in result.spec.to_dict().items() if key != "label"}
    values = {name: _without_nan(getattr(result, name)) for name in _VALUES}
    measures = {"measures": result.measures} if result.measures else {}
    distinct = {"distinct_images": result.distinct_images} if result.distinct_images else {}
    return {"spec": spec, **values, **measures, "warnings": list(result.warnings), **distinct}


def _without_nan(value: Any) -> Any:
    """An error, or errors by name, with null for one that is unknown: JSON has no NaN."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def _with_nan(value: float | None) -> float:
    return math.nan if value is None else value


def encode_result(result: CellResult, records: bytes) -> bytes:
    """The contents of ``result.json`` for a cell with these records."""
    digest = hashlib.sha256(records).hexdigest()
    content = {"format": FORMAT, **result_values(result), "records": digest}
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def _check_texts(content: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` unless what should be text in a result is text."""
    texts = [content.get(name, "") for name in _TEXTS]
    lists = isinstance(content["warnings"], list) and isinstance(content["versions"], dict)
    if not lists or not all(
        isinstance(text, str) for text in (*texts, *content["warnings"], *content["versions"].values())
    ):
        raise ValueError(f"{RESULT} has a value of another type where text belongs")


def _check_numbers(content: Mapping[str, Any], spec: CellSpec, columns: Mapping[str, Column]) -> None:
    """Raise a ``ValueError`` unless the numbers of a result are those of its records."""
    sizes, domains = columns["size"], columns["domain"]
    lengths = {name: int(sizes[domains == index].sum()) for index, name in enumerate(spec.domains)}
    images = len(columns["labels"])
    numbers = {
        "error": rec.total_error(columns),
        "domain_errors": rec.domain_errors(columns, lengths),
        "images": images,
    }
    for name, number in numbers.items():
        # as JSON, since true == 1 in Python; domains in their order, since tables have them in that of the result
        if json.dumps(content[name]) != json.dumps(_without_nan(number)):
            raise ValueError(f"its {name} in {RESULT} is not that of its records")
    if not images or sum(lengths.values()) != images or len(columns["predictions"]) != images:
        raise ValueError("its records do not cover the stream")
    classes = content["classes"]
    largest = int(columns["labels"].max(initial=0, where=columns["labels"] != rec.UNKNOWN))
    if isinstance(classes, bool) or not isinstance(classes, int) or classes <= largest:
        raise ValueError(f"its classes in {RESULT} are fewer than those of its records: {classes!r}")


def _labelled(spec: CellSpec, directory: Path) -> CellSpec:
    """``spec`` with the label of the run that made it; the label is not part of the result."""
    try:
        named = CellSpec.from_json((directory / SPEC).read_text())
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return spec
    return named if named == spec else spec


def result_mark(directory: Path) -> str:
    """Which result is in ``directory`` now: every result that is written has another mark; ``""`` if there is none."""
    try:
        status = (directory / RESULT).stat()
    except OSError:
        return ""
    return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


def read_timing(directory: Path) -> dict[str, Any]:
    """The seconds, images per second and peak memory of the cell in ``directory``; empty if they are not known."""
    try:
        numbers = json.loads((directory / TIMING).read_text())
        known = {name: float(numbers[name]) for name in ("seconds", "images_per_second", "peak_memory_mb")}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}
    return {name: number if 0 <= number < math.inf else math.nan for name, number in known.items()}
