"""Clean sets of small pictures, found in a data root or downloaded on first use."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

from grotta.data.arrays import SPLITS, Images, Labels, Reader, Split
from grotta.data.dataset import DomainDataset
from grotta.data.entry import Entry, Holding
from grotta.data.errors import DamagedDataError, DownloadError, not_found
from grotta.data.options import Options

SIZE = (32, 32)  # of the pictures


@dataclass(frozen=True)
class CleanSet:
    """A clean data set of small pictures."""

    name: str  # what it is loaded by
    class_names: tuple[str, ...]  # of its classes
    # (split, roots) -> (place, reader), or None if no root has it
    find: Callable[[Split, Sequence[Path]], tuple[Path, Reader] | None]
    looks_for: str  # what ``find`` looks for in a root, in words
    fetch: Callable[[Path], None]  # downloads it into a data root
    default_model: str = ""  # the bundled network for it, or ``""``

    @property
    def corrupted(self) -> str:
        """The name of the data set of its corruptions."""
        return f"{self.name}-c"


def read_clean(clean: CleanSet, split: Split, roots: tuple[Path, ...], download: bool) -> tuple[Images, Labels]:
    """The pictures (n, H, W, 3) and labels (n,) of a split; downloaded into the last root if it is in none."""
    found = clean.find(split, roots)
    if found is None and download:
        try:
            clean.fetch(roots[-1])
        except DownloadError as error:
            raise DownloadError(f"{clean.name} ({split}) is not available and cannot be downloaded: {error}") from error
        found = clean.find(split, roots)
    if found is None:
        raise not_found(f"{clean.name} ({split})", roots, clean.looks_for, clean.name)
    place, read = found
    images, labels = read()
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= len(clean.class_names):
        raise DamagedDataError(f"{place}: labels up to {labels.max()} are not those of {clean.name}")
    return images, labels


def read_test_images(clean: CleanSet, roots: tuple[Path, ...]) -> Images:
    """The test pictures (n, H, W, 3) of a set that is known to be available."""
    return read_clean(clean, "test", roots, download=False)[0]


def digest(images: Images) -> str:
    """A digest of the pixels."""
    return hashlib.sha256(images.data).hexdigest()


def open_training(clean: CleanSet, options: Options) -> DomainDataset:
    """The splits as domains ``train`` and ``test``, under the name of the corruptions that a network is trained for."""

    @lru_cache(maxsize=2)
    def read(split: Split) -> tuple[Images, Labels]:
        return read_clean(clean, split, options.roots, options.download)

    return DomainDataset(
        name=clean.corrupted,
        domains=options.choose(("train", "test")),
        class_names=clean.class_names,
        image_shape=(3, *SIZE),
        provenance="original",
        default_model=clean.default_model,
        open_images=lambda split: read(cast(Split, split))[0],
        open_labels=lambda split: read(cast(Split, split))[1],
    )


def clean_entry(clean: CleanSet, *, title: str, size: str) -> Entry:
    """The entry of a clean set itself; it has no domains, so it can be trained on, but not adapted to."""
    return Entry(
        name=clean.name,
        title=title,
        train=partial(open_training, clean),
        find=partial(_find_splits, clean),
        looks_for=clean.looks_for,
        get=clean.fetch,
        size=size,
        corrupted=clean.corrupted,
        listed=False,
    )


def _find_splits(clean: CleanSet, roots: Sequence[Path]) -> Holding:
    found = {split: clean.find(split, roots) for split in SPLITS}
    here = tuple((split, place[0]) for split, place in found.items() if place is not None)
    return Holding(here, tuple(split for split in SPLITS if found[split] is None) if here else ())
