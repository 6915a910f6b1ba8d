"""ImageNet, clean: validation pictures, and training pictures to train on; in class folders or with a labels.json."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from grotta.data.dataset import DomainDataset
from grotta.data.entry import Entry, Holding, unless_here
from grotta.data.errors import DamagedDataError, not_found
from grotta.data.fetch import fetch_by_hand
from grotta.data.folders import list_classes, subfolders
from grotta.data.options import Options
from grotta.data.pictures import Listing, picture_dataset

NUM_CLASSES = 1000
# Folders of class folders, or of pictures with a labels.json (file name -> class index).
PLACES = {
    "train": ("imagenet/train", "ImageNet/train", "ILSVRC2012/train", "train"),
    "val": ("imagenet/val", "ImageNet/val", "ILSVRC2012/val", "val", "imagenet-val-1k"),
}
BY_HAND = (
    "ImageNet needs an account. 1. Log in at https://image-net.org and download ILSVRC2012_img_val.tar "
    "2. Sort its pictures into class folders, so that {root}/imagenet/val/<wnid>/*.JPEG is there for all 1000 classes."
)


def find_pictures(part: str, roots: Sequence[Path]) -> Path | None:
    """The first folder of clean pictures of ``train`` or ``val``, or None."""
    folders = [root / place for root in roots for place in PLACES[part]]
    return next((folder for folder in folders if (folder / "labels.json").is_file() or subfolders(folder)), None)


def require_validation(roots: Sequence[Path]) -> Path:
    """The first folder of validation pictures; if there is none, an error that says where it was looked for."""
    folder = find_pictures("val", roots)
    if folder is None:
        raise not_found(ENTRY.name, roots, f"clean pictures in {' or '.join(PLACES['val'])}", ENTRY.name)
    return folder


def list_clean(folder: Path) -> tuple[tuple[str, ...], Listing]:
    """The classes and the pictures of a folder of clean ImageNet pictures, in either layout."""
    index = folder / "labels.json"
    if not index.is_file():
        classes = class_folders(folder)
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


def class_folders(folder: Path) -> tuple[str, ...]:
    """The names of all 1000 class folders, sorted."""
    classes = tuple(subfolders(folder))
    if len(classes) != NUM_CLASSES:
        raise DamagedDataError(
            f"{folder} has {len(classes)} class folders; a label is a folder's place among all {NUM_CLASSES} of them"
        )
    return classes


def open_imagenet(options: Options) -> DomainDataset:
    """The validation pictures as the domain ``val``; the training pictures as ``train``, if asked for."""
    if options.domains is None or "train" not in options.domains or find_pictures("train", options.roots) is None:
        return _dataset({"val": require_validation(options.roots)}, options)
    return _dataset({part: folder for part in PLACES if (folder := find_pictures(part, options.roots))}, options)


def open_training(options: Options) -> DomainDataset:
    """The training pictures as domain ``train`` and the validation pictures as ``val``, whichever are available."""
    folders = {part: folder for part in PLACES if (folder := find_pictures(part, options.roots))}
    return _dataset(folders or {"val": require_validation(options.roots)}, options)


def _dataset(folders: dict[str, Path], options: Options) -> DomainDataset:
    found = {domain: list_clean(folder) for domain, folder in folders.items()}
    classes = next(iter(found.values()))[0]
    # Pictures with a list of labels have numbers for names of classes: their places among the sorted folders.
    named = [names for names, listing in found.values() if not (listing.folder / "labels.json").is_file()]
    if any(names != classes for names in named):
        raise ValueError(f"the class folders of {folders['val']} are not those of {folders['train']}")
    return picture_dataset(
        options,
        name=ENTRY.name,
        domains=options.choose(list(folders)),
        class_names=classes,
        provenance="original",
        list_domain=partial(_list_domain, folders),
    )


def _list_domain(folders: dict[str, Path], domain: str) -> Listing:
    return list_clean(folders[domain])[1]


def _find(roots: Sequence[Path]) -> Holding:
    here = tuple((part, folder) for part in ("val", "train") if (folder := find_pictures(part, roots)) is not None)
    # Training pictures are only needed for training: without them nothing is missing.
    return Holding(here, ("val",) if here and here[0][0] != "val" else ())


ENTRY = Entry(
    name="imagenet",
    title="ImageNet, clean: validation pictures, and training pictures for grotta train",
    open=open_imagenet,
    train=open_training,
    find=_find,
    looks_for=f"{' or '.join(PLACES['val'])}; for training, {' or '.join(PLACES['train'])}",
    get=partial(unless_here, _find, partial(fetch_by_hand, BY_HAND)),
    size="says what to do by hand",
    corrupted="imagenet-c",
    listed=False,
    from_files=True,
)
