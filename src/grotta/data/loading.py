"""Load a data set by name."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from grotta.data.arrays import SPLITS, Split
from grotta.data.clean import read_clean
from grotta.data.dataset import DomainDataset, to_nchw
from grotta.data.folders import open_any_folder
from grotta.data.options import Options
from grotta.data.registry import CLEAN, ENTRIES
from grotta.data.roots import data_roots, naming_the_root

_FOLDER = "folder:"


def list_datasets() -> list[str]:
    """The names of the benchmark's data sets, the bundled one first; ``load`` takes ``folder:PATH`` too.

    >>> list_datasets()
    ['fashion-c', 'cifar10-c', 'cifar100-c', 'imagenet-c', 'pacs', 'officehome', 'domainnet']
    """
    return [name for name, entry in ENTRIES.items() if entry.listed]


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
        name: one of ``list_datasets()``, ``imagenet`` (its clean validation pictures), or ``folder:PATH``.
        root: a data root to search before ``GROTTA_DATA`` and the cache.
        domains: the domains wanted, in the order wanted; all of them by default.
        severity: of the corruptions, 1 to 5.
        seed: of corruptions that have to be regenerated.
        image_size: side of the square that pictures from files are resized and cropped to.
        download: whether CIFAR may be downloaded if it is nowhere to be found.
        keep_decoded: keep pictures decoded from files in the cache, for many runs over the same ones.

    >>> data = load("fashion-c", domains=["fog", "snow"])
    >>> data.provenance, data.labels("fog").shape
    ('regenerated', (10000,))
    """
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    options = Options(
        roots=data_roots(root),
        domains=None if domains is None else tuple(domains),
        severity=severity,
        seed=seed,
        image_size=image_size,
        download=download,
        keep_decoded=keep_decoded,
    )
    if name == _FOLDER:
        raise ValueError("name: expected a path after folder:, as in folder:./pictures")
    if name.startswith(_FOLDER):
        return open_any_folder(name.removeprefix(_FOLDER), options)
    entry = ENTRIES.get(name)
    if entry is None or entry.open is None:
        known = [known for known, entry in ENTRIES.items() if entry.open]
        raise ValueError(f"name: expected folder:PATH or one of {', '.join(known)}; got {name!r}")
    with naming_the_root(root):
        return entry.open(options)


def load_clean(
    name: str, split: Split = "test", *, root: str | os.PathLike[str] | None = None, download: bool = True
) -> tuple[Tensor, Tensor]:
    """A clean set of small pictures (``fashion``, ``cifar10``, ``cifar100``): uint8 (n, 3, H, W) and int64 (n,).

    >>> images, labels = load_clean("fashion")
    >>> images.shape, labels.shape
    (torch.Size([10000, 3, 32, 32]), torch.Size([10000]))
    """
    if name not in CLEAN:
        raise ValueError(f"name: expected one of {', '.join(CLEAN)}; got {name!r}")
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}; got {split!r}")
    roots = data_roots(root)
    with naming_the_root(root):
        images, labels = read_clean(CLEAN[name], split, roots, download)
    return to_nchw(images), torch.from_numpy(labels)
