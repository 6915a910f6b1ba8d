"""How nodes get data: the images and weights of the driver's machine, sent to nodes that do not have them."""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from grotta import models
from grotta._check import check_type
from grotta._files import locked, replacing, require_space
from grotta.bench.inputs.network import find_weights, network_name
from grotta.bench.inputs.opened import CellInputs, make_inputs, open_dataset
from grotta.bench.spec import CellSpec
from grotta.data.arrays import Images
from grotta.data.dataset import DomainDataset
from grotta.data.roots import cache_dir

PART_BYTES = 1 << 24  # of what is sent at once; small enough for the object store of any node
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Extract:
    """A range of bytes in a file of the driver's machine, and where they are on any other one."""

    what: str  # a name for messages
    path: Path  # of the file there
    start: int  # of the bytes in the file
    size: int  # how many bytes
    status: tuple[int, int]  # size and time of change of the file, which tell it from others at that path
    host: str  # the machine it was taken from

    def place(self) -> tuple[Path, int] | None:
        """The file with these bytes on this machine and where in it they start, or None if this machine lacks them."""
        if _status(self.path) == self.status:
            return self.path, self.start
        received = self._received()
        return (received, 0) if (_status(received) or (-1,))[0] == self.size else None

    def parts(self) -> Iterator[Bytes]:
        """The bytes in pieces, on the machine that has them."""
        for start in range(0, self.size, PART_BYTES):
            count = min(PART_BYTES, self.size - start)
            yield np.fromfile(self.path, np.uint8, count, offset=self.start + start)

    def receive(self, parts: Iterable[Bytes]) -> None:
        """Put the bytes into this machine's cache unless it has them; completely or not at all, and only once."""
        if self.place() is not None:
            return
        path = self._received()
        with locked(path):
            if self.place() is not None:
                return
            require_space(path.parent, self.size, f"a copy of {self.what}")
            with replacing(path) as temporary, temporary.open("wb") as file:
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
        raise TypeError(f"{what} must be an array that is mapped from a file")
    return extract(what, Path(root.filename), root.offset + array.ctypes.data - root.ctypes.data, array.nbytes)


@dataclass(frozen=True)
class SentImages:
    """Domain -> its images (n, H, W, 3), mapped from wherever they are on this machine."""

    extracts: Mapping[str, Extract]
    shapes: Mapping[str, tuple[int, ...]]

    def __call__(self, domain: str) -> Images:
        path, start = _here(self.extracts[domain])
        return np.memmap(path, np.uint8, "r", start, self.shapes[domain])


@dataclass(frozen=True)
class SentInputs:
    """What is sent to nodes for cells on one data set with one network; small and picklable."""

    dataset: DomainDataset  # reads from ``images``
    images: SentImages  # of its domains
    model: str  # ``NAME`` or ``NAME@WEIGHTS``
    weights: Extract | None  # their file; None if they come with grotta

    @property
    def extracts(self) -> tuple[Extract, ...]:
        """All that a machine needs to have."""
        return *self.images.extracts.values(), *([self.weights] if self.weights else [])

    def __call__(self, spec: CellSpec, device: str) -> CellInputs:
        """What a cell runs on, opened on this machine."""
        architecture = self.model.partition("@")[0]
        weights = "bundled" if self.weights is None else _here(self.weights)[0]
        network = models.create_model(architecture, weights=weights, num_classes=self.dataset.num_classes)
        return make_inputs(spec, self.dataset, network.to(device), self.model)


def inputs_to_send(spec: CellSpec, data_root: Path | None) -> SentInputs:
    """What is sent to nodes for a cell, from this machine; images that are missing are made."""
    dataset = open_dataset(spec, data_root)
    opened = {domain: dataset.open_images(domain) for domain in dataset.domains}
    arrays = {domain: check_type(f"{spec.dataset} {domain}", images, np.ndarray) for domain, images in opened.items()}
    images = SentImages(
        {domain: extract_array(f"{dataset.name} {domain}", array) for domain, array in arrays.items()},
        {domain: array.shape for domain, array in arrays.items()},
    )
    name = network_name(spec.model, dataset)
    _, weights = find_weights(name, data_root)
    return SentInputs(
        replace(
            dataset,
            open_images=images,
            open_labels={domain: dataset.labels(domain) for domain in dataset.domains}.__getitem__,
            identify={domain: dataset.identity(domain) for domain in dataset.domains}.__getitem__,
        ),
        images,
        name,
        extract(f"the weights {Path(weights).name}", Path(weights)) if weights else None,
    )


def _here(extract: Extract) -> tuple[Path, int]:
    place = extract.place()
    if place is None:
        raise FileNotFoundError(
            f"{extract.what} is not on {platform.node()}: it was not sent, or the cache was emptied"
        )
    return place


def _status(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
