"""What a source model is trained and measured on: two disjoint parts of a data set or of some of its domains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import grotta.data
from grotta.data import DomainDataset
from grotta.data.options import Options
from grotta.data.registry import find_entry
from grotta.data.roots import data_roots, naming_the_root
from grotta.models.card import TrainingData
from grotta.models.training import Images

_IN_MEMORY_BYTES = 2 << 30
_HELD_OUT = 0.1
_WORDS = {"train": "the training pictures", "test": "the test pictures", "val": "the validation pictures"}


@dataclass(frozen=True)
class DomainImages:
    """Images of some domains, one domain after the other, read when they are asked for."""

    dataset: DomainDataset  # that has the domains
    positions: Mapping[str, Tensor]  # domain -> which of its images (n,)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """The images at ``indices``, uint8 (len(indices), 3, H, W)."""
        found = torch.empty(len(indices), *self.dataset.image_shape, dtype=torch.uint8)
        start = 0
        for domain, positions in self.positions.items():
            here = (indices >= start) & (indices < start + len(positions))
            if here.any():
                found[here] = self.dataset.images(domain, positions[indices[here] - start])
            start += len(positions)
        return found

    def labels(self) -> Tensor:
        """The labels of all images, int64 (n,)."""
        parts = [torch.as_tensor(self.dataset.labels(domain))[here] for domain, here in self.positions.items()]
        return torch.cat(parts).long()


@dataclass(frozen=True)
class Split:
    """Images and labels to train on and to measure on, and what they are."""

    images: Images
    labels: Tensor
    measured: tuple[Images, Tensor]
    data: TrainingData


def open_source(name: str, domains: Sequence[str], image_size: int, root: Path | None) -> DomainDataset:
    """Open ``domains`` of data set ``name``; without any, what the data set itself reserves for training.

    A clean set (``cifar10``) has no domains of its own; they are looked for in its corruptions (``cifar10-c``).
    """
    entry = find_entry(name, "dataset")
    if not domains and entry.train is not None:
        with naming_the_root(root):
            return entry.train(Options(roots=data_roots(root), image_size=image_size))
    known = name if entry.open is not None else entry.corrupted
    return grotta.data.load(known, root=root, domains=domains or None, image_size=image_size)


def choose_split(dataset: DomainDataset, domains: Sequence[str], seed: int) -> Split:
    """The two domains that a data set reserves for training and measuring, or a split of the chosen domains."""
    if not domains and len(dataset.domains) == 2 and set(dataset.domains) <= _WORDS.keys():
        trained, measured = ({domain: torch.arange(len(dataset.labels(domain)))} for domain in dataset.domains)
        return _split(dataset, trained, measured, *(_WORDS[domain] for domain in dataset.domains))
    if not domains and len(dataset.domains) > 1:
        choice = ", ".join(dataset.domains)
        raise ValueError(f"domain must be chosen with --domain, as {dataset.name} has several: {choice}")
    return domain_split(dataset, domains or dataset.domains, seed)


def domain_split(dataset: DomainDataset, domains: Sequence[str], seed: int) -> Split:
    """Nine tenths of each domain to train on, the rest to measure on."""
    trained, measured = dict[str, Tensor](), dict[str, Tensor]()
    for domain in domains:
        count = len(dataset.labels(domain))
        if count < 2:
            raise ValueError(f"domain {domain!r} of {dataset.name} has {count} images; at least 2 are needed")
        trained[domain], measured[domain] = held_out(count, seed)
    which = f"domain{'s' if len(domains) > 1 else ''} {', '.join(domains)}"
    return _split(dataset, trained, measured, f"nine tenths of {which}", f"the other tenth of {which}")


def held_out(count: int, seed: int, share: float = _HELD_OUT) -> tuple[Tensor, Tensor]:
    """Split ``count`` positions at random into those to train on and a ``share`` to measure on.

    >>> trained, measured = held_out(10, seed=0)
    >>> len(trained), len(measured)
    (9, 1)
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    cut = max(1, round(share * count))
    return order[cut:].sort().values, order[:cut].sort().values


def _split(
    dataset: DomainDataset,
    trained: Mapping[str, Tensor],
    measured: Mapping[str, Tensor],
    trained_on: str,
    measured_on: str,
) -> Split:
    (images, labels), measured_with = _read(dataset, trained), _read(dataset, measured)
    data = TrainingData(
        dataset=dataset.name,
        trained_on=trained_on,
        trained_images=len(labels),
        measured_on=measured_on,
        measured_images=len(measured_with[1]),
        num_classes=dataset.num_classes,
        image_shape=dataset.image_shape,
        class_names=tuple(dataset.class_names),
    )
    return Split(images, labels, measured_with, data)


def _read(dataset: DomainDataset, positions: Mapping[str, Tensor]) -> tuple[Images, Tensor]:
    """Images and their labels, in memory if they fit."""
    images = DomainImages(dataset, positions)
    labels = images.labels()
    fit = len(labels) * math.prod(dataset.image_shape) <= _IN_MEMORY_BYTES
    return images[torch.arange(len(labels))] if fit else images, labels
