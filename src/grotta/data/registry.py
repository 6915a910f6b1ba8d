"""Every data set by name: how to find it, open it and get it. The one place where names are compared."""

import os
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from grotta.data import cifar, fashion
from grotta.data.arrays import Split
from grotta.data.clean import CleanSet, read_clean
from grotta.data.corrupted import open_corrupted
from grotta.data.dataset import DomainDataset, to_nchw
from grotta.data.options import Options
from grotta.data.roots import data_roots

FASHION = CleanSet("fashion", fashion.CLASS_NAMES, fashion.find, "fashion-mnist/train-images-idx3-ubyte.gz")
CIFAR10 = CleanSet(
    "cifar10",
    cifar.CIFAR10_CLASSES,
    partial(cifar.find, cifar.CIFAR10),
    "cifar-10-batches-bin/, cifar-10-binary.tar.gz, or picture strips in cifar10/",
)
CIFAR100 = CleanSet(
    "cifar100",
    cifar.CIFAR100_CLASSES,
    partial(cifar.find, cifar.CIFAR100),
    "cifar-100-binary/, cifar-100-binary.tar.gz, or picture strips in cifar100/",
)
CLEAN = {clean.name: clean for clean in (FASHION, CIFAR10, CIFAR100)}

OPENERS: dict[str, Callable[[Options], DomainDataset]] = {
    "fashion-c": partial(open_corrupted, "fashion-c", FASHION, default_model="fashion_resnet8"),
    "cifar10-c": partial(open_corrupted, "cifar10-c", CIFAR10, published="CIFAR-10-C", default_model="cifar10_resnet"),
    "cifar100-c": partial(open_corrupted, "cifar100-c", CIFAR100, published="CIFAR-100-C"),
}


def list_datasets() -> list[str]:
    """The names that ``load`` takes, besides ``folder:PATH``.

    >>> list_datasets()[0]
    'fashion-c'
    """
    return list(OPENERS)


def load(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    domains: Sequence[str] | None = None,
    severity: int = 5,
    seed: int = 0,
    image_size: int = 224,
    download: bool = True,
    keep_decoded: bool = False,
) -> DomainDataset:
    """Open a data set by name, or any ``folder:PATH`` with ``PATH/<domain>/<class>/<picture>``.

    Args:
        name: one of ``list_datasets()`` or ``folder:PATH``.
        root: a data root to search before ``GROTTA_DATA`` and the cache.
        domains: the domains wanted, in the order wanted; all of them by default.
        severity: of the corruptions, 1 to 5.
        seed: of corruptions that have to be regenerated.
        image_size: side of the square that pictures from files are resized and cropped to.
        download: whether a small data set (CIFAR) that is nowhere to be found may be downloaded.
        keep_decoded: keep pictures decoded from files in the cache, for many runs over the same ones.

    >>> data = load("fashion-c", domains=["fog", "snow"])
    >>> data.provenance, data.labels("fog").shape
    ('regenerated', (10000,))
    """
    options = Options(
        roots=data_roots(root),
        domains=None if domains is None else tuple(domains),
        severity=severity,
        seed=seed,
        image_size=image_size,
        download=download,
        keep_decoded=keep_decoded,
    )
    if name not in OPENERS:
        raise ValueError(f"name: expected folder:PATH or one of {', '.join(OPENERS)}; got {name!r}")
    return OPENERS[name](options)


def load_clean(
    name: str, split: Split = "test", *, root: str | os.PathLike[str] | None = None, download: bool = True
) -> tuple[Tensor, Tensor]:
    """A clean set of small pictures: uint8 (n, 3, H, W) and int64 (n,).

    >>> images, labels = load_clean("fashion")
    >>> images.shape, labels.shape
    (torch.Size([10000, 3, 32, 32]), torch.Size([10000]))
    """
    if name not in CLEAN:
        raise ValueError(f"name: expected one of {', '.join(CLEAN)}; got {name!r}")
    if split not in ("train", "test"):
        raise ValueError(f"split: expected 'train' or 'test', got {split!r}")
    images, labels = read_clean(CLEAN[name], split, data_roots(root), download)
    return to_nchw(images), torch.from_numpy(labels)
