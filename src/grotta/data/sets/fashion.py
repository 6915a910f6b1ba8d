"""Fashion-MNIST: the test set is bundled, the training set is found in a data root or downloaded."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np

from grotta.data.arrays import Images, Labels, Reader, Split
from grotta.data.clean import CleanSet, clean_entry
from grotta.data.corrupted import corrupted_entry
from grotta.data.download import Remote
from grotta.data.errors import DamagedDataError
from grotta.data.fetch import fetch_files

CLASS_NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
# Folders inside a data root: our own downloads, torchvision's. Last, the Debian package dataset-fashion-mnist.
FOLDERS = ("fashion-mnist", "FashionMNIST/raw", "fashion", ".")
SYSTEM_FOLDER = Path("/usr/share/datasets/fashion-mnist")
ASSETS = Path(str(files("grotta.data") / "assets" / "fashion"))

_UNPACK: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress, "": bytes}


def find(split: Split, roots: Sequence[Path]) -> tuple[Path, Reader] | None:
    """Where a split is, and how to read it: uint8 (n, 32, 32, 3), int64 (n,). None if no root has it.

    >>> place, read = find("test", [])
    >>> images, labels = read()
    >>> images.shape, labels[:5].tolist()
    ((10000, 32, 32, 3), [9, 2, 1, 1, 6])
    """
    if split == "test":
        return ASSETS, _read_bundled
    folders = [root / name for root in roots for name in FOLDERS] + [SYSTEM_FOLDER]
    for folder in folders:
        if all(_file(folder, name) for name in _names("train")):
            return folder, partial(_read, folder, "train")
    return None


def read_idx(path: Path) -> Images:
    """The unsigned bytes of an idx file (plain, ``.gz`` or ``.xz``), in the shape its header gives."""
    try:
        content = _UNPACK[path.suffix](path.read_bytes())
        dimensions = content[3]
        shape = np.frombuffer(content, ">u4", dimensions, offset=4).astype(int)
        values: Images = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
        if content[:3] != b"\0\0\x08" or values.size != shape.prod():
            raise ValueError("the header does not fit the content")
        return values.reshape(shape)
    except (OSError, EOFError, ValueError, IndexError, lzma.LZMAError, zlib.error) as error:
        raise DamagedDataError(f"{path} is not a complete idx file: {error}") from error


def _names(prefix: str) -> tuple[str, str]:
    return f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"


def _file(folder: Path, name: str) -> Path | None:
    return next((path for end in _UNPACK if (path := folder / f"{name}{end}").is_file()), None)


def _read(folder: Path, prefix: str) -> tuple[Images, Labels]:
    images, labels = (_file(folder, name) for name in _names(prefix))
    if images is None or labels is None:
        raise FileNotFoundError(f"{folder} no longer holds {' and '.join(_names(prefix))}")
    grey, targets = read_idx(images), read_idx(labels)
    if grey.shape != (len(targets), 28, 28):
        raise DamagedDataError(f"{images} has shape {grey.shape}, but {labels} has {len(targets)} labels")
    padded = np.pad(grey, ((0, 0), (2, 2), (2, 2)))
    return np.repeat(padded[..., None], 3, axis=3), targets.astype(np.int64)


@lru_cache(maxsize=1)
def _decode_bundled() -> tuple[Images, Labels]:
    images, labels = _read(ASSETS, "t10k")
    images.setflags(write=False)
    return images, labels


def _read_bundled() -> tuple[Images, Labels]:
    images, labels = _decode_bundled()
    return images, labels.copy()


# Official address, and the md5 sums on its page.
_HOST = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
TRAIN = (
    Remote(f"{_HOST}/train-images-idx3-ubyte.gz", "md5", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
    Remote(f"{_HOST}/train-labels-idx1-ubyte.gz", "md5", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
)
FASHION = CleanSet(
    name="fashion",
    class_names=CLASS_NAMES,
    find=find,
    looks_for="fashion-mnist/train-images-idx3-ubyte.gz, or the Debian package dataset-fashion-mnist",
    fetch=partial(fetch_files, TRAIN, "fashion-mnist"),
    default_model="fashion_resnet8",
)
FASHION_C = corrupted_entry(
    FASHION,
    title="Fashion-MNIST, fifteen corruptions, 10 classes, 32x32",
    looks_for="nothing: its clean pictures are part of grotta",
    get=None,
    size="nothing to get: it is part of grotta",
)
CLEAN = clean_entry(FASHION, title="Fashion-MNIST, clean", size="26 MB, the training set")
