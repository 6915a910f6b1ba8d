"""A finished stream: the order of the images, how it was made, and its file."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from grotta import _files
from grotta._check import check_whole

VERSION = 1
_HEADER = "grotta.stream"
_ARRAYS = ("indices", "boundaries", "label_distributions")


@dataclass(frozen=True, eq=False)
class Stream:
    """The order in which the images of some domains arrive.

    >>> import grotta.streams
    >>> stream = grotta.streams.iid([[0, 1, 0, 1], [1, 0, 0]], num_classes=2)
    >>> len(stream), stream.boundaries.tolist(), stream.label_distributions.shape
    (7, [0, 4, 7], (2, 2))
    >>> [(domain, len(indices)) for domain, indices in stream.batches(3)]
    [(0, 3), (0, 1), (1, 3)]
    """

    indices: tuple[NDArray[np.int64], ...]
    """One array per domain, into that domain's images, in stream order."""
    label_distributions: NDArray[np.float64]
    """(periods, C), all domains in order: the label distribution of each period."""
    spec: Mapping[str, Any]
    """Everything the stream was made from, as plain JSON values; the labels as their SHA-256."""

    def __post_init__(self) -> None:
        for array in (*self.indices, self.label_distributions):
            array.setflags(write=False)

    def __len__(self) -> int:
        return sum(map(len, self.indices))

    @cached_property
    def boundaries(self) -> NDArray[np.int64]:
        """Where each domain starts in the whole stream, and finally its length: (domains + 1,)."""
        return np.cumsum([0, *map(len, self.indices)], dtype=np.int64)

    @cached_property
    def hash(self) -> str:
        """Hex SHA-256 of the spec and the indices, the same on every platform."""
        return digest(_canonical(self.spec), np.concatenate(self.indices), self.boundaries)

    def batches(self, batch_size: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Each batch as (domain, indices), in stream order.

        A batch never mixes domains: the last one of a domain is may be shorter.
        """
        check_whole("batch_size", batch_size, at_least=1)
        return (
            (domain, indices[start : start + batch_size])
            for domain, indices in enumerate(self.indices)
            for start in range(0, len(indices), batch_size)
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stream to a safetensors file; readers see the old file or the complete new one."""
        content = (np.concatenate(self.indices), self.boundaries, self.label_distributions)
        checksum = digest(_canonical(self.spec), *content)
        # One metadata entry, because the order of several is not kept: the same stream gives the same bytes.
        header = _canonical({"version": VERSION, "spec": self.spec, "checksum": checksum})
        _files.write(path, save(dict(zip(_ARRAYS, content)), {_HEADER: header}))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a stream that ``save`` wrote; any other or damaged file is a ``ValueError`` that says so."""
        metadata, arrays = _read(Path(path))
        if _HEADER not in metadata:
            raise ValueError(f"{path} is a safetensors file, but not of a stream")
        try:
            header = json.loads(metadata[_HEADER])
            version, spec, checksum = header["version"], header["spec"], header["checksum"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is damaged: its header cannot be read") from None
        if version != VERSION:
            raise ValueError(f"{path} has stream format {version}; this version of grotta reads {VERSION}")
        content = [arrays[name] for name in _ARRAYS if name in arrays]
        if checksum != digest(_canonical(spec), *content):
            raise ValueError(f"{path} is damaged: its content does not have the checksum it was written with")
        flat, boundaries, distributions = content
        return cls(tuple(flat[start:end] for start, end in pairwise(boundaries)), distributions, spec)


def digest(text: str, *arrays: NDArray[Any]) -> str:
    """Hex SHA-256 of a text and arrays, independent of byte order and memory layout."""
    sha = hashlib.sha256(text.encode())
    for array in arrays:
        sha.update(f"{array.dtype.name}{array.shape}".encode())
        sha.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return sha.hexdigest()


def _canonical(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    if path.is_dir():
        raise ValueError(f"{path} is a directory, not a stream file")
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a stream file, or is damaged: {error}") from None
