"""Load a data set by name."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grotta._check import check_one_of
from grotta.data.arrays import SPLITS, Split
from grotta.data.clean import read_clean
from grotta.data.dataset import DomainDataset, to_nchw
from grotta.data.options import Options
from grotta.data.registry import CLEAN, ENTRIES, find_entry
from grotta.data.roots import data_roots, naming_the_root
from grotta.data.variants import has_variants, open_variants

if TYPE_CHECKING:
    from torch import Tensor


def list_datasets() -> list[str]:
    """The names of the benchmark's data sets, the bundled one first; ``load`` takes ``folder:PATH`` too.

    >>> list_datasets()
    ['fashion-c', 'cifar10-c', 'cifar100-c', 'imagenet-c', 'pacs', 'officehome', 'domainnet', 'pklot']
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
    recorded: bool = False,
) -> DomainDataset:
    """Open a data set by name, or any ``folder:PATH`` with ``PATH/<domain>/<class>/<picture>``.

    Args:
        name: one of ``list_datasets()``, ``imagenet`` (its clean validation pictures), or ``folder:PATH``.
        root: a data root to search before ``GROTTA_DATA`` and the cache.
        domains: the domains wanted, in the order wanted; all of them by default. Of corruptions, any that are
            registered; by default the fifteen of the benchmark. ``fog@3`` has severity 3, ``fog:Bag+Coat`` two of the
            classes, ``fog#2`` is fog for the second time; ``clean`` are the clean pictures, ``noise`` and ``blank``
            garbage.
        severity: of the corruptions, 1 to 5.
        seed: of corruptions that have to be regenerated.
        image_size: side of the square that pictures from files are resized and cropped to.
        download: whether CIFAR may be downloaded if it is not found.
        keep_decoded: cache decoded pictures, for many runs over the same ones.
        recorded: the pictures in the order in which they were taken; the domains are then cameras, and ``domains`` may
            have ``CAMERA:CONDITION`` for the pictures of one weather or the like. Of ``pklot``, ``folder:PATH``,
            ``times:PATH``, ``csv:FILE`` (columns path, label, time, domain, stream) and ``video:FILE``.

    >>> data = load("fashion-c", domains=["fog", "snow"])
    >>> data.provenance, data.labels("fog").shape
    ('regenerated', (10000,))
    """
    entry = find_entry(name)
    options = Options(
        roots=data_roots(root),
        domains=None if domains is None else tuple(domains),
        severity=severity,
        seed=seed,
        image_size=image_size,
        download=download,
        keep_decoded=keep_decoded,
    )
    opened = entry.record if recorded else entry.open
    if opened is None:
        known = [known for known, other in ENTRIES.items() if (other.record if recorded else other.open)]
        what = "a recording: folder:PATH, times:PATH, csv:FILE, video:FILE" if recorded else "folder:PATH"
        raise ValueError(f"name must be {what} or one of {', '.join(known)}; got {name!r}")
    with naming_the_root(root):
        if recorded or not has_variants(options.domains):
            return opened(options)
        own = opened(replace(options, domains=None)).domains if entry.from_files else ()
        corrupted = name in {other.corrupted for other in ENTRIES.values()}
        return open_variants(opened, options, literal=own, severities=corrupted)


def load_clean(
    name: str, split: Split = "test", *, root: str | os.PathLike[str] | None = None, download: bool = True
) -> "tuple[Tensor, Tensor]":
    """A clean set of small pictures (``fashion``, ``cifar10``, ``cifar100``): uint8 (n, 3, H, W) and int64 (n,).

    >>> images, labels = load_clean("fashion")
    >>> images.shape, labels.shape
    (torch.Size([10000, 3, 32, 32]), torch.Size([10000]))
    """
    import torch

    clean = CLEAN[check_one_of("name", name, CLEAN)]
    check_one_of("split", split, SPLITS)
    with naming_the_root(root):
        images, labels = read_clean(clean, split, data_roots(root), download)
    return to_nchw(images), torch.from_numpy(labels)
