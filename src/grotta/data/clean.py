"""The clean small-picture sets, found in a data root or downloaded on first use."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grotta.data.arrays import Images, Labels, Reader, Split
from grotta.data.errors import DamagedDataError, DownloadError, not_found


@dataclass(frozen=True)
class CleanSet:
    """A clean data set of small pictures.

    Attributes:
        name: what it is loaded by.
        class_names: of its classes.
        find: (split, roots) -> (place, reader), or None if no root has it.
        looks_for: what ``find`` looks for in a root, in words.
        fetch: downloads it into a data root.
    """

    name: str
    class_names: tuple[str, ...]
    find: Callable[[Split, Sequence[Path]], tuple[Path, Reader] | None]
    looks_for: str
    fetch: Callable[[Path], None]


def read_clean(clean: CleanSet, split: Split, roots: tuple[Path, ...], download: bool) -> tuple[Images, Labels]:
    """The pictures (n, H, W, 3) and labels (n,) of a split; downloaded into the last root if it is in none."""
    found = clean.find(split, roots)
    if found is None and download:
        try:
            clean.fetch(roots[-1])
        except DownloadError as error:
            raise DownloadError(f"{clean.name} ({split}) is not here and cannot be downloaded: {error}") from error
        found = clean.find(split, roots)
    if found is None:
        raise not_found(f"{clean.name} ({split})", roots, clean.looks_for, clean.name)
    place, read = found
    images, labels = read()
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= len(clean.class_names):
        raise DamagedDataError(f"{place}: labels up to {labels.max()} are not those of {clean.name}")
    return images, labels


def read_test_images(clean: CleanSet, roots: tuple[Path, ...]) -> Images:
    """The test pictures (n, H, W, 3) of a set that is known to be here."""
    return read_clean(clean, "test", roots, download=False)[0]


def digest(images: Images) -> str:
    """A digest of the pixels."""
    return hashlib.sha256(images.data).hexdigest()
