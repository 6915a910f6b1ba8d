"""Data sets of picture files: decoded, resized and cropped when asked for."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grotta import _files
from grotta.data.arrays import Images, Labels, cached_images
from grotta.data.dataset import DomainDataset
from grotta.data.decode import read_picture, short_side
from grotta.data.options import Options
from grotta.data.progress import progress
from grotta.data.roots import cache_dir

_THREADS = min(8, os.cpu_count() or 1)
_PIECE = 256


@dataclass(frozen=True)
class Listing:
    """The picture files of a domain: names relative to ``folder``, and their labels (n,)."""

    folder: Path
    names: tuple[str, ...]
    labels: Labels


@dataclass(frozen=True)
class Pictures:
    """Picture files as an array that is decoded when indexed."""

    listing: Listing  # the files
    resize: int  # the short side after resizing, with the sides' ratio kept
    crop: int  # the side of the square cut out of the middle

    def __len__(self) -> int:
        return len(self.listing.names)

    def __getitem__(self, rows: slice | npt.NDArray[np.int64], /) -> Images:
        """The pictures (n, crop, crop, 3) of these rows."""
        paths = [self.listing.folder / self.listing.names[position] for position in np.arange(len(self))[rows]]
        decode = partial(read_picture, resize=self.resize, crop=self.crop)
        with ThreadPoolExecutor(_THREADS) as pool:
            decoded = list(pool.map(decode, paths))
        return np.stack(decoded) if decoded else np.empty((0, self.crop, self.crop, 3), np.uint8)

    def digest(self) -> str:
        """A digest of the files and of how they are cropped, without reading them."""
        digest = hashlib.sha256(f"{self.listing.folder} {self.resize} {self.crop}".encode())
        for name in self.listing.names:
            status = (self.listing.folder / name).stat()
            digest.update(f"\n{name} {status.st_size} {status.st_mtime_ns}".encode())
        return digest.hexdigest()

    def identity(self) -> str:
        """A digest of the names and the content of the files, wherever they are.

        Reading all of them takes as long as using them, so the digest is kept in the cache for as long as no file has
        another size or time of change.
        """
        seen = hashlib.blake2b(f"{self.listing.folder.resolve()} {self.digest()}".encode(), digest_size=16).hexdigest()
        kept = cache_dir() / "digests" / seen
        with contextlib.suppress(OSError):
            return kept.read_text()
        digest = hashlib.blake2b(f"{self.resize} {self.crop}".encode(), digest_size=16)
        for name in self.listing.names:
            content = (self.listing.folder / name).read_bytes()
            digest.update(f"\n{name} {len(content)} ".encode() + content)
        with contextlib.suppress(OSError):
            _files.write(kept, digest.hexdigest().encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Files:
    """The picture files of each domain, listed when first used; a pickle lists them again."""

    name: str
    list_domain: Callable[[str], Listing]
    resize: int
    crop: int
    _listings: dict[str, Listing] = field(default_factory=dict, init=False, repr=False, compare=False)

    def pictures(self, domain: str) -> Pictures:
        if domain not in self._listings:
            self._listings[domain] = self.list_domain(domain)
        return Pictures(self._listings[domain], self.resize, self.crop)

    def labels(self, domain: str) -> Labels:
        return self.pictures(domain).listing.labels.copy()

    def identity(self, domain: str) -> str:
        return self.pictures(domain).identity()

    def decoded(self, domain: str) -> Images:
        """The pictures as an array in the cache, decoded when a domain is first used."""
        pictures = self.pictures(domain)
        count, side = len(pictures), self.crop
        path = cache_dir() / "decoded" / f"{pictures.digest()[:24]}.npy"

        def fill(target: Images) -> None:
            with progress(f"Decoding {self.name} {domain}", count) as advance:
                for start in range(0, count, _PIECE):
                    piece = pictures[start : start + _PIECE]
                    target[start : start + _PIECE] = piece
                    advance(len(piece))

        return cached_images(path, (count, side, side, 3), fill)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_listings": {}}


def picture_dataset(
    options: Options, *, name: str, list_domain: Callable[[str], Listing], cropped: bool = False, **fields: Any
) -> DomainDataset:
    """Picture files in the size that is asked for, read from decoded arrays in the cache if that is asked for too.

    Pictures that were ``cropped`` before are only scaled; the others are scaled, then cropped. ``fields`` are of the
    data set.
    """
    size = options.image_size
    files = _Files(name, list_domain, size if cropped else short_side(size), size)
    return DomainDataset(
        name=name,
        image_shape=(3, size, size),
        open_images=files.decoded if options.keep_decoded else files.pictures,
        open_labels=files.labels,
        identify=files.identity,
        **fields,
    )
