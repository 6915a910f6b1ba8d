"""A cell on disk: how its files are written, and how finished ones are read back.

``<out>/cells/<id>/`` holds ``spec.json``; while it runs a checkpoint; ``records.npz`` and ``timing.json``; and, written
last, ``result.json``: a cell is finished when that file is there and whole. Nothing in it or in the records depends on
when, where or how fast the cell ran.
"""

import functools
import hashlib
import json
import math
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import grotta
from grotta import _files
from grotta._version import __version__
from grotta.bench.cell import records as rec
from grotta.bench.cell.records import Column
from grotta.bench.spec import CellSpec

FORMAT = 1
_DECIDING = ("augment.py", "functional", "memory", "methods", "models", "nn", "streams")
SPEC, RECORDS, TIMING, RESULT = "spec.json", "records.npz", "timing.json", "result.json"


class DamagedCellError(ValueError):
    """A cell's directory is not what a finished cell leaves behind; it does not count."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """A finished cell.

    Attributes:
        spec: what was run; its label is that of whoever asks, or of the run that made it.
        model: the network, with the name of its weights.
        model_fingerprint: a digest of its weights.
        stream_hash: of the stream; equal for all methods on the same stream.
        data_fingerprint: a digest of the pictures; empty in results of before there was one.
        error: in per cent, over all images.
        domain_errors: in per cent, by domain, in stream order.
        images: how many the stream had.
        classes: how many the data set has.
        provenance: of the data: ``published``, ``regenerated`` or ``original``.
        versions: of the software, and the kind of device.
        warnings: what a reader of the numbers should know.
        directory: where the cell's files are.
        seconds, images_per_second, peak_memory_mb: NaN if they are not known; never the same twice.
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
    warnings: tuple[str, ...] = ()
    directory: Path = field(default=Path(), compare=False)
    seconds: float = field(default=math.nan, compare=False)
    images_per_second: float = field(default=math.nan, compare=False)
    peak_memory_mb: float = field(default=math.nan, compare=False)

    @functools.cached_property
    def records(self) -> dict[str, Column]:
        """The columns of :mod:`grotta.bench.cell.records`: one row per batch; ``predictions``, ``labels`` per image."""
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


def load_results(out: str | Path) -> list[CellResult]:
    """All finished cells in ``out``, in the order of their names; a damaged one is warned of and left out."""
    results = []
    for directory in sorted((Path(out) / "cells").glob("*/")):
        try:
            result = read_result(directory)
        except DamagedCellError as error:
            warnings.warn(f"{error}; it is not counted, and run again by the next bench", stacklevel=2)
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
        content["warnings"] = tuple(content["warnings"])
        return CellResult(spec=_labelled(spec, directory), directory=directory, **content, **_timing(directory))
    except FileNotFoundError as error:
        if not (directory / RESULT).exists():
            return None
        raise DamagedCellError(f"the cell in {directory} is damaged: {Path(error.filename).name} is missing") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedCellError(f"the cell in {directory} is damaged: {error}") from error


def result_values(result: CellResult) -> dict[str, Any]:
    """What a result says, as plain JSON values, without what depends on who asks, when and where."""
    spec = {key: value for key, value in result.spec.to_dict().items() if key != "label"}
    names = (
        "model",
        "model_fingerprint",
        "stream_hash",
        "data_fingerprint",
        "error",
        "domain_errors",
        "images",
        "classes",
    )
    values = {name: getattr(result, name) for name in (*names, "provenance", "versions")}
    return {"spec": spec, **values, "warnings": list(result.warnings)}


def encode_result(result: CellResult, records: bytes) -> bytes:
    """The contents of ``result.json`` for a cell with these records."""
    digest = hashlib.sha256(records).hexdigest()
    content = {"format": FORMAT, **result_values(result), "records": digest}
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def write_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, at once or not at all."""
    _files.write(path, content)


def versions(device: str = "cpu") -> dict[str, str]:
    """Of the software that decides the bits of a result, and the kind of device it ran on."""
    return {
        "grotta": __version__,
        "code": code_digest(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "device": device,
    }


@functools.cache
def code_digest(package: Path = Path(grotta.__file__).parent) -> str:
    """A short digest of the code that decides the bits of a result, which may differ under one version."""
    digest = hashlib.blake2b(digest_size=6)
    for part in _DECIDING:
        for path in sorted((package / part).rglob("*.py")) if (package / part).is_dir() else [package / part]:
            digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _check_texts(content: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` unless what is text in a result is text."""
    texts = [content[name] for name in ("model", "model_fingerprint", "stream_hash", "provenance")]
    texts += [content.get("data_fingerprint", "")]
    lists = isinstance(content["warnings"], list) and isinstance(content["versions"], dict)
    if not lists or not all(
        isinstance(text, str) for text in (*texts, *content["warnings"], *content["versions"].values())
    ):
        raise ValueError(f"{RESULT} has something else in the place of a text")


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
        if json.dumps(content[name]) != json.dumps(number):
            raise ValueError(f"its {name} in {RESULT} is not that of its records")
    if not images or sum(lengths.values()) != images or len(columns["predictions"]) != images:
        raise ValueError("its records do not cover the stream")
    classes = content["classes"]
    if isinstance(classes, bool) or not isinstance(classes, int) or classes <= int(columns["labels"].max()):
        raise ValueError(f"its classes in {RESULT} are fewer than those of its records: {classes!r}")


def _labelled(spec: CellSpec, directory: Path) -> CellSpec:
    """``spec`` with the label that the run which made it gave; the label is no part of the result."""
    try:
        named = CellSpec.from_json((directory / SPEC).read_text())
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return spec
    return named if named == spec else spec


def _timing(directory: Path) -> Mapping[str, Any]:
    try:
        numbers = json.loads((directory / TIMING).read_text())
        known = {name: float(numbers[name]) for name in ("seconds", "images_per_second", "peak_memory_mb")}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}
    return {name: number if 0 <= number < math.inf else math.nan for name, number in known.items()}
