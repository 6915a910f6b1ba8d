"""ImageNet-C in its published layout, or made from whatever clean ImageNet validation pictures are here."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from grotta.data.corruptions import CORRUPTIONS
from grotta.data.dataset import ArrayDataset, DomainDataset, same_labels
from grotta.data.decode import short_side
from grotta.data.errors import DamagedDataError, DataNotFoundError, not_found
from grotta.data.folders import list_classes, subfolders
from grotta.data.options import Options
from grotta.data.pictures import Listing, PictureDataset, Pictures
from grotta.data.regenerate import Regenerated

NUM_CLASSES = 1000
CORRUPTED_PLACES = ("ImageNet-C", "imagenet-c")
# Folders of class folders, or of pictures with a labels.json (file name -> class index).
CLEAN_PLACES = ("imagenet/val", "ImageNet/val", "ILSVRC2012/val", "val", "imagenet-val-1k")

LOOKED_FOR = f"ImageNet-C/<corruption>/<severity>/<class>/*.JPEG, or clean pictures in {' or '.join(CLEAN_PLACES)}"


def find_corrupted(roots: Sequence[Path], severities: Sequence[int] = (1, 2, 3, 4, 5)) -> Path | None:
    """The first folder with a ``<corruption>/<severity>/`` in it, or None."""
    folders = [root / place for root in roots for place in (*CORRUPTED_PLACES, ".")]
    wanted = [f"{name}/{severity}" for name in CORRUPTIONS for severity in severities]
    return next((folder for folder in folders if any((folder / path).is_dir() for path in wanted)), None)


def find_clean(roots: Sequence[Path]) -> Path | None:
    """The first folder of clean validation pictures, or None."""
    folders = [root / place for root in roots for place in CLEAN_PLACES]
    return next((folder for folder in folders if (folder / "labels.json").is_file() or subfolders(folder)), None)


def open_imagenet_c(options: Options) -> DomainDataset:
    """The published ImageNet-C if it is here, otherwise corruptions of the clean validation pictures."""
    domains = options.choose(CORRUPTIONS)
    folder = find_corrupted(options.roots, [options.severity])
    if folder is None:
        other = find_corrupted(options.roots)
        if other is not None:
            raise DataNotFoundError(f"{other} has no severity {options.severity}; it has {_severities(other)}")
        return _regenerated(domains, options)
    missing = [name for name in domains if not (folder / name / str(options.severity)).is_dir()]
    if missing:
        raise DataNotFoundError(
            f"{folder} has no {missing[0]}/{options.severity}; it has {', '.join(subfolders(folder))}"
        )
    classes = _class_folders(folder / domains[0] / str(options.severity))
    size = options.image_size
    dataset = PictureDataset(
        name="imagenet-c",
        domains=domains,
        class_names=classes,
        image_shape=(3, size, size),
        provenance="published",
        list_domain=partial(_list_corrupted, folder, options.severity, classes),
        resize=size,  # the published pictures are cropped already
    )
    return dataset.kept_decoded() if options.keep_decoded else dataset


def open_imagenet(options: Options) -> DomainDataset:
    """The clean validation pictures, as the one domain ``val``."""
    folder = _require_clean(options)
    classes, _ = list_clean(folder)
    size = options.image_size
    dataset = PictureDataset(
        name="imagenet",
        domains=options.choose(["val"]),
        class_names=classes,
        image_shape=(3, size, size),
        provenance="original",
        list_domain=partial(_list_only_domain, folder),
        resize=short_side(size),
    )
    return dataset.kept_decoded() if options.keep_decoded else dataset


def list_clean(folder: Path) -> tuple[tuple[str, ...], Listing]:
    """The classes and the pictures of a folder of clean ImageNet pictures, in either layout."""
    index = folder / "labels.json"
    if not index.is_file():
        classes = _class_folders(folder)
        return classes, list_classes(folder, classes)
    try:
        entries = sorted(json.loads(index.read_text()).items())
        labels = np.array([label for _, label in entries], dtype=np.int64)
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedDataError(f"{index} is not a JSON object of file name -> class index: {error}") from error
    if not len(labels) or labels.min() < 0 or labels.max() >= NUM_CLASSES:
        raise DamagedDataError(f"{index}: expected class indices from 0 to {NUM_CLASSES - 1}")
    names = tuple(name for name, _ in entries)
    return tuple(str(label) for label in range(NUM_CLASSES)), Listing(folder, names, labels)


def _regenerated(domains: tuple[str, ...], options: Options) -> DomainDataset:
    folder = _require_clean(options)
    classes, listing = list_clean(folder)
    size = options.image_size
    return ArrayDataset(
        name="imagenet-c",
        domains=domains,
        class_names=classes,
        image_shape=(3, size, size),
        provenance="regenerated",
        open_images=Regenerated(
            name="imagenet",
            digest=Pictures(listing, short_side(size), size).digest(),
            shape=(len(listing.names), size, size, 3),
            open_clean=partial(_open_clean, folder, size),
            scale="imagenet",
            severity=options.severity,
            seed=options.seed,
        ),
        open_labels=partial(same_labels, listing.labels),
    )


def _severities(folder: Path) -> str:
    here = [
        severity for severity in range(1, 6) if any((folder / name / str(severity)).is_dir() for name in CORRUPTIONS)
    ]
    return ", ".join(map(str, here))


def _require_clean(options: Options) -> Path:
    folder = find_clean(options.roots)
    if folder is None:
        raise not_found("imagenet", options.roots, LOOKED_FOR, "imagenet")
    return folder


def _open_clean(folder: Path, size: int) -> Pictures:
    return Pictures(list_clean(folder)[1], short_side(size), size)


def _list_only_domain(folder: Path, domain: str) -> Listing:
    return list_clean(folder)[1]


def _list_corrupted(folder: Path, severity: int, classes: tuple[str, ...], corruption: str) -> Listing:
    return list_classes(folder / corruption / str(severity), classes)


def _class_folders(folder: Path) -> tuple[str, ...]:
    classes = tuple(subfolders(folder))
    if len(classes) != NUM_CLASSES:
        raise DamagedDataError(
            f"{folder} has {len(classes)} class folders; a label is a folder's place among all {NUM_CLASSES} of them"
        )
    return classes
