"""The clean small-picture sets, found in a data root or downloaded on first use."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grotta.data.arrays import Images, Labels, Reader, Split
from grotta.data.errors import DataNotFoundError


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
    fetch: Callable[[Path], None] | None = None


def read_clean(clean: CleanSet, split: Split, roots: tuple[Path, ...], download: bool) -> tuple[Images, Labels]:
    """The pictures (n, H, W, 3) and labels (n,) of a split; downloaded into the last root if it is in none."""
    found = clean.find(split, roots)
    if found is None and download and clean.fetch:
        clean.fetch(roots[-1])
        found = clean.find(split, roots)
    if found is None:
        places = "\n".join(f"  {root}" for root in roots)
        raise DataNotFoundError(
            f"{clean.name} ({split}) is in none of\n{places}\n(looked for {clean.looks_for}); "
            f"get it with: grotta data get {clean.name}"
        )
    return found[1]()


def read_test_images(clean: CleanSet, roots: tuple[Path, ...]) -> Images:
    """The test pictures (n, H, W, 3) of a set that is known to be here."""
    return read_clean(clean, "test", roots, download=False)[0]


def digest(images: Images) -> str:
    """A digest of the pixels."""
    return hashlib.sha256(images.data).hexdigest()
