"""What a cell takes from the machine that hands it out: pictures and weights, for machines that do not have them."""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from grotta import _files, models
from grotta.bench.cell.inputs import Setting, check, check_device, find_weights, make_setting, model_name, open_dataset
from grotta.bench.spec import CellSpec
from grotta.data.arrays import Images, Labels
from grotta.data.dataset import ArrayDataset
from grotta.data.roots import cache_dir

PART_BYTES = 1 << 24  # of what is sent at once; small enough for the object store of any node
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Extract:
    """So many bytes of a file of the machine that hands out cells, and where they are on any other one.

    Attributes:
        what: they are, in words.
        path: of the file there.
        start: of the bytes in the file.
        size: how many bytes.
        status: size and time of change of the file, which tell it from others at that path.
        host: the machine it was taken from.
    """

    what: str
    path: Path
    start: int
    size: int
    status: tuple[int, int]
    host: str

    def place(self) -> tuple[Path, int] | None:
        """The file with these bytes on this machine and where in it they start, or None if they are not here."""
        if _status(self.path) == self.status:
            return self.path, self.start
        received = self._received()
        return (received, 0) if (_status(received) or (-1,))[0] == self.size else None

    def parts(self) -> Iterator[Bytes]:
        """The bytes, piece by piece, on the machine that has them."""
        for start in range(0, self.size, PART_BYTES):
            count = min(PART_BYTES, self.size - start)
            yield np.fromfile(self.path, np.uint8, count, offset=self.start + start)

    def receive(self, parts: Iterable[Bytes]) -> None:
        """Keep the bytes in this machine's cache, unless they are here; whole or not at all, and once."""
        if self.place() is not None:
            return
        path = self._received()
        with _files.locked(path):
            if self.place() is not None:
                return
            _files.require_space(path.parent, self.size, f"a copy of {self.what}")
            with _files.replacing(path) as temporary, temporary.open("wb") as file:
                for part in parts:
                    file.write(part.data)

    def _received(self) -> Path:
        origin = f"{self.host}:{self.path}:{self.start}:{self.size}:{self.status}".encode()
        name = hashlib.blake2b(origin, digest_size=12).hexdigest()
        return cache_dir() / "received" / f"{name}{self.path.suffix}"


def extract(what: str, path: Path, start: int = 0, size: int | None = None) -> Extract:
    """Bytes of a file of this machine, all of them by default."""
    path = path.resolve()
    status = path.stat()
    identity = status.st_size, status.st_mtime_ns
    return Extract(what, path, start, status.st_size - start if size is None else size, identity, platform.node())


def extract_array(what: str, array: npt.NDArray[np.uint8]) -> Extract:
    """The bytes of an array that is mapped from a file, or a slice of one."""
    root: object = array
    while isinstance(root, np.ndarray) and isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or not array.flags.c_contiguous:
        raise TypeError(f"{what}: expected an array in a file")
    return extract(what, Path(root.filename), root.offset + array.ctypes.data - root.ctypes.data, array.nbytes)


@dataclass(frozen=True)
class Pictures:
    """Domain -> its pictures (n, H, W, 3), mapped from wherever they are on this machine."""

    extracts: Mapping[str, Extract]
    shapes: Mapping[str, tuple[int, ...]]

    def __call__(self, domain: str) -> Images:
        """The pictures of a domain."""
        path, start = _here(self.extracts[domain])
        return np.memmap(path, np.uint8, "r", start, self.shapes[domain])


@dataclass(frozen=True)
class GivenLabels:
    """Domain -> its labels (n,), carried along."""

    labels: Mapping[str, Labels]

    def __call__(self, domain: str) -> Labels:
        """The labels of a domain."""
        return self.labels[domain].copy()


@dataclass(frozen=True)
class Supply:
    """What cells on one data set with one network take with them, small and picklable.

    Attributes:
        dataset: reads from ``pictures``.
        pictures: of its domains.
        model: ``NAME`` or ``NAME@WEIGHTS``.
        weights: the file of them; None if they come with grotta.
    """

    dataset: ArrayDataset
    pictures: Pictures
    model: str
    weights: Extract | None

    @property
    def extracts(self) -> tuple[Extract, ...]:
        """All that has to be on a machine."""
        return *self.pictures.extracts.values(), *([self.weights] if self.weights else [])

    def open(self, spec: CellSpec, device: str) -> Setting:
        """What a cell runs on, on this machine."""
        check(spec)
        check_device(device)
        architecture = self.model.partition("@")[0]
        weights = "bundled" if self.weights is None else _here(self.weights)[0]
        network = models.create_model(architecture, weights=weights, num_classes=self.dataset.num_classes)
        return make_setting(spec, self.dataset, network.to(device), self.model)


def pack(spec: CellSpec, data_root: Path | None) -> Supply:
    """What a cell takes with it from this machine; images that are not here are made."""
    dataset = open_dataset(spec, data_root)
    if not isinstance(dataset, ArrayDataset):
        raise TypeError(f"{dataset.name}: expected its pictures in arrays, got {type(dataset).__name__}")
    arrays = {domain: dataset.open_images(domain) for domain in dataset.domains}
    pictures = Pictures(
        {domain: extract_array(f"{dataset.name} {domain}", array) for domain, array in arrays.items()},
        {domain: array.shape for domain, array in arrays.items()},
    )
    name = model_name(spec.model, dataset)
    _, weights = find_weights(name, data_root)
    return Supply(
        replace(
            dataset,
            open_images=pictures,
            open_labels=GivenLabels({domain: dataset.labels(domain) for domain in dataset.domains}),
            identify={domain: dataset.identity(domain) for domain in dataset.domains}.__getitem__,
        ),
        pictures,
        name,
        extract(f"the weights {Path(weights).name}", Path(weights)) if weights else None,
    )


def _here(extract: Extract) -> tuple[Path, int]:
    place = extract.place()
    if place is None:
        raise FileNotFoundError(f"{extract.what} is not on {platform.node()}: not sent, or its cache was emptied")
    return place


def _status(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
