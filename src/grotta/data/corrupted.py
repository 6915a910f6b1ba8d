"""CIFAR-10-C and the like: the published arrays if they are available, otherwise made from the clean test set."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from grotta.data.arrays import Images, Labels, checked_labels, load_npy
from grotta.data.clean import SIZE, CleanSet, digest, open_training, read_clean, read_test_images
from grotta.data.corruptions import BENCHMARK_DOMAINS, SEVERITIES, list_corruptions
from grotta.data.dataset import DomainDataset, same_labels
from grotta.data.entry import Entry, Holding
from grotta.data.errors import DamagedDataError, DataNotFoundError
from grotta.data.options import Options
from grotta.data.regenerate import Regenerated


@dataclass(frozen=True)
class Published:
    """A folder of published arrays: ``<corruption>.npy`` with the severities stacked, and ``labels.npy``."""

    folder: Path
    severity: int
    num_classes: int

    def images(self, corruption: str) -> Images:
        """The pictures of one corruption at the severity: uint8 (n, 32, 32, 3), memory-mapped."""
        path = self.folder / f"{corruption}.npy"
        stacked, labels = load_npy(path), self._stacked_labels()
        if stacked.dtype != np.uint8 or stacked.shape[1:] != (*SIZE, 3):
            raise DamagedDataError(f"{path}: expected uint8 (5n, 32, 32, 3), found {stacked.dtype} {stacked.shape}")
        if len(stacked) != len(labels):
            raise DamagedDataError(f"{path} has {len(stacked)} pictures, but labels.npy {len(labels)} labels")
        images: Images = stacked[self._rows(len(stacked))]
        return images

    def identity(self, corruption: str) -> str:
        """A digest of the pictures of one corruption at the severity."""
        status = (self.folder / f"{corruption}.npy").stat()
        return _digest_once(self, corruption, status.st_size, status.st_mtime_ns)

    def labels(self, corruption: str) -> Labels:
        """The labels at the severity, the same for every corruption: int64 (n,)."""
        stacked = self._stacked_labels()
        return stacked[self._rows(len(stacked))]

    def _stacked_labels(self) -> Labels:
        path = self.folder / "labels.npy"
        labels = checked_labels(load_npy(path), path, self.num_classes)
        if len(labels) % SEVERITIES:
            raise DamagedDataError(f"{path}: expected equally many labels for 5 severities, found {len(labels)}")
        return labels

    def _rows(self, count: int) -> slice:
        per_severity = count // SEVERITIES
        return slice((self.severity - 1) * per_severity, self.severity * per_severity)


@lru_cache(maxsize=256)
def _digest_once(arrays: Published, corruption: str, size: int, changed: int) -> str:
    """``size`` and ``changed`` make sure that a replaced file is read again."""
    return hashlib.blake2b(arrays.images(corruption).data, digest_size=16).hexdigest()


def find_published(folder_name: str, roots: Sequence[Path], domains: Sequence[str] = BENCHMARK_DOMAINS) -> Path | None:
    """The first folder of that name, in a root or a root itself, with all that is published for these domains.

    If there is none, the first with any published array: what it lacks is named in an error, not replaced by
    regenerated pictures.
    """
    folders = [folder for root in roots for folder in (root / folder_name, root) if folder.name == folder_name]
    whole = (folder for folder in folders if not missing_arrays(folder, domains))
    begun = (folder for folder in folders if len(missing_arrays(folder)) <= len(BENCHMARK_DOMAINS))
    return next(whole, None) or next(begun, None)


def missing_arrays(folder: Path, domains: Sequence[str] = BENCHMARK_DOMAINS) -> list[str]:
    """The published files for these domains that are not in a folder."""
    return [name for name in ("labels.npy", *(f"{domain}.npy" for domain in domains)) if not (folder / name).is_file()]


def open_corrupted(clean: CleanSet, published: str, options: Options) -> DomainDataset:
    """Corruptions of a clean test set; ``published`` is the folder name of its published arrays, or ``""``.

    If any corruption beyond the fifteen of the benchmark is asked for, which no published folder holds, all of them
    are regenerated.
    """
    domains = options.choose(BENCHMARK_DOMAINS, list_corruptions)
    in_benchmark = set(domains) <= set(BENCHMARK_DOMAINS)
    folder = find_published(published, options.roots, domains) if published and in_benchmark else None
    if folder is not None:
        missing = missing_arrays(folder, domains)
        if missing:
            present = sorted(path.name for path in folder.glob("*.npy"))
            raise DataNotFoundError(f"{folder} has no {missing[0]}; it has {', '.join(present)}")
        arrays = Published(folder, options.severity, len(clean.class_names))
        open_images, open_labels, (height, width) = arrays.images, arrays.labels, SIZE
        identify: Callable[[str], str] = arrays.identity
    else:
        images, labels = read_clean(clean, "test", options.roots, options.download)
        count, height, width, _ = images.shape
        regenerated = Regenerated(
            name=clean.name,
            digest=digest(images),
            shape=(count, height, width, 3),
            open_clean=partial(read_test_images, clean, options.roots),
            scale="cifar",
            severity=options.severity,
            seed=options.seed,
        )
        open_images, open_labels, identify = regenerated, partial(same_labels, labels), regenerated.identity
    return DomainDataset(
        name=clean.corrupted,
        domains=domains,
        class_names=clean.class_names,
        image_shape=(3, height, width),
        provenance="published" if folder else "regenerated",
        default_model=clean.default_model,
        open_images=open_images,
        open_labels=open_labels,
        identify=identify,
    )


def corrupted_entry(
    clean: CleanSet,
    *,
    title: str,
    get: Callable[[Path], None] | None,
    size: str,
    published: str = "",
    looks_for: str = "",
) -> Entry:
    """The entry of the corruptions of a clean set, with the folder name of its published arrays if there are any."""
    return Entry(
        name=clean.corrupted,
        title=title,
        open=partial(open_corrupted, clean, published),
        train=partial(open_training, clean),
        find=partial(_find, clean, published),
        looks_for=looks_for or f"{published}/*.npy; else {clean.looks_for}",
        get=get,
        size=size,
    )


def _find(clean: CleanSet, published: str, roots: Sequence[Path]) -> Holding:
    folder = find_published(published, roots) if published else None
    if folder is not None:
        lacking = missing_arrays(folder)
        usable = "labels.npy" not in lacking and len(lacking) < len(BENCHMARK_DOMAINS)
        missing = tuple(f"{name} in {folder}" for name in lacking)
        return Holding((("published", folder),) if usable else (), missing)
    test = clean.find("test", roots)
    return Holding() if test is None else Holding(((f"regenerated from {clean.name}", test[0]),))
