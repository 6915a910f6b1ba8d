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
from grotta.data.folders import contents, list_classes, subfolders
from grotta.data.options import Options
from grotta.data.pictures import Listing, PictureDataset, Pictures
from grotta.data.regenerate import Regenerated

NUM_CLASSES = 1000
SEVERITIES = (1, 2, 3, 4, 5)
CORRUPTED_PLACES = ("ImageNet-C", "imagenet-c")
# Folders of class folders, or of pictures with a labels.json (file name -> class index).
CLEAN_PLACES = ("imagenet/val", "ImageNet/val", "ILSVRC2012/val", "val", "imagenet-val-1k")
TRAINING_PLACES = ("imagenet/train", "ImageNet/train", "ILSVRC2012/train", "train")

_LAYOUT = "<corruption>/<severity>/<class>/*.JPEG"
LOOKED_FOR = f"ImageNet-C/{_LAYOUT}, or clean pictures in {' or '.join(CLEAN_PLACES)}"


def find_corrupted(
    roots: Sequence[Path], domains: Sequence[str] = CORRUPTIONS, severities: Sequence[int] = SEVERITIES
) -> Path | None:
    """The first folder with each of these corruptions at one of the severities.

    If there is none, the first with anything published in it: what it lacks is to be named, not to be made up for by
    regenerated pictures.
    """
    begun = None
    for root in roots:
        for folder in _begun_folders(root):
            if set(domains) <= set(published_corruptions(folder, severities)):
                return folder
            begun = begun or folder
    return begun


def published_corruptions(folder: Path, severities: Sequence[int] = SEVERITIES) -> list[str]:
    """The corruptions with a ``<corruption>/<severity>/`` in a folder, for any of the severities."""
    return [name for name in CORRUPTIONS if any((folder / name / str(severity)).is_dir() for severity in severities)]


def find_clean(roots: Sequence[Path]) -> Path | None:
    """The first folder of clean validation pictures, or None."""
    return _find_pictures(roots, CLEAN_PLACES)


def find_training(roots: Sequence[Path]) -> Path | None:
    """The first folder of clean training pictures, or None."""
    return _find_pictures(roots, TRAINING_PLACES)


def open_imagenet_c(options: Options) -> DomainDataset:
    """The published ImageNet-C if it is here, otherwise corruptions of the clean validation pictures."""
    domains = options.choose(CORRUPTIONS)
    folder = find_corrupted(options.roots, domains, [options.severity])
    if folder is None:
        return _regenerated(domains, options)
    here = published_corruptions(folder, [options.severity])
    missing = [name for name in domains if name not in here]
    if missing:
        raise _incomplete(folder, missing[0], options.severity)
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
    pictures = Pictures(listing, short_side(size), size)
    regenerated = Regenerated(
        name="imagenet",
        digest=pictures.digest(),
        shape=(len(listing.names), size, size, 3),
        open_clean=partial(_open_clean, folder, size),
        scale="imagenet",
        severity=options.severity,
        seed=options.seed,
        source=pictures.identity,
    )
    return ArrayDataset(
        name="imagenet-c",
        domains=domains,
        class_names=classes,
        image_shape=(3, size, size),
        provenance="regenerated",
        open_images=regenerated,
        open_labels=partial(same_labels, listing.labels),
        identify=regenerated.identity,
    )


def _begun_folders(root: Path) -> list[Path]:
    """The folders of a root that hold published pictures, or are meant to: called ImageNet-C and not empty."""
    begun = [root / place for place in CORRUPTED_PLACES if contents(root / place)]
    # a root may have any name and hold other data sets
    named = root.name in CORRUPTED_PLACES and any((root / name).is_dir() for name in CORRUPTIONS)
    return [*begun, root] if named or published_corruptions(root) else begun


def _incomplete(folder: Path, corruption: str, severity: int) -> DataNotFoundError:
    here = {each: names for each in SEVERITIES if (names := published_corruptions(folder, [each]))}
    if severity in here:
        found = ", ".join(f"{name}/{severity}" for name in here[severity])
        return DataNotFoundError(f"{folder} has no {corruption}/{severity}; it has {found}")
    if here:
        return DataNotFoundError(f"{folder} has no severity {severity}; it has {', '.join(map(str, here))}")
    found = ", ".join("/".join([name, *contents(folder / name)[:1]]) for name in contents(folder)[:5])
    return DataNotFoundError(f"{folder} has no {corruption}/{severity}: expected {_LAYOUT}, found {found}")


def _find_pictures(roots: Sequence[Path], places: Sequence[str]) -> Path | None:
    folders = [root / place for root in roots for place in places]
    return next((folder for folder in folders if (folder / "labels.json").is_file() or subfolders(folder)), None)


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
