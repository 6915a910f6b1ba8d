"""Arrays on disk that are made once: written completely or not at all, checked when opened, remade when damaged."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from grotta import _files
from grotta.data.errors import DamagedDataError

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
Reader = Callable[[], tuple[Images, Labels]]

# A file is read in full once per process to check it; later openings of the same unchanged file are free.
_sound: set[tuple[str, int, int]] = set()


def cached_images(path: Path, shape: tuple[int, ...], fill: Callable[[Images], None]) -> Images:
    """The uint8 array of ``shape`` in the ``.npy`` file ``path``, memory-mapped for reading.

    A missing or damaged file is made by ``fill``, which is given the empty array to write into. Two processes that
    want the same file at once do the work once, and a file is never seen half-written.
    """
    if not _is_sound(path, shape):
        _files.require_writable(path.parent, "GROTTA_CACHE")
        with _files.locked(path):
            if not _is_sound(path, shape):
                _make(path, shape, fill)
    images: Images = np.load(path, mmap_mode="r")
    return images


def load_npy(path: Path) -> npt.NDArray[Any]:
    """The array in a ``.npy`` file, memory-mapped for reading; pickles are never opened."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedDataError(f"{path} is not a complete .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise DamagedDataError(f"{path} is not a complete .npy file: it is a .npz archive")
    return array


def checked_labels(labels: npt.NDArray[Any], path: Path, num_classes: int | None = None) -> Labels:
    """Labels (n,) as int64; an error that names ``path`` if they are anything but class indices."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        raise DamagedDataError(f"{path}: labels must be integers (n,), found {labels.dtype} {labels.shape}")
    if num_classes is not None and not (labels.min() >= 0 and labels.max() < num_classes):
        found = f"{labels.min()} to {labels.max()}"
        raise DamagedDataError(f"{path}: expected labels from 0 to {num_classes - 1}, found {found}")
    return labels.astype(np.int64)


def _make(path: Path, shape: tuple[int, ...], fill: Callable[[Images], None]) -> None:
    _files.require_space(path.parent, int(np.prod(shape)), f"making {path.name}")
    with _files.replacing(path) as temporary:
        array = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
        fill(array)
        array.flush()
        del array
        summary = {"shape": shape, "dtype": "uint8", "sha256": _digest(temporary)}
    _files.write(path.with_suffix(".json"), json.dumps(summary).encode())
    _sound.add(_identity(path))


def _is_sound(path: Path, shape: tuple[int, ...]) -> bool:
    try:
        if _identity(path) in _sound:
            return True
        summary = json.loads(path.with_suffix(".json").read_text())
        found = np.load(path, mmap_mode="r")
        sound = found.shape == shape and found.dtype == np.uint8 and summary["sha256"] == _digest(path)
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return False
    if sound:
        _sound.add(_identity(path))
    return bool(sound)


def _identity(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
