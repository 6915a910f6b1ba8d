"""What a source model is trained and measured on: two disjoint parts of a data set or of some of its domains."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Some images of one domain, read when they are asked for."""

    dataset: DomainDataset
    domain: str
    positions: Tensor

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """The images at ``indices``, uint8 (len(indices), 3, H, W)."""
        return self.dataset.images(self.domain, self.positions[indices])


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
        trained, measured = (
            take(dataset, domain, torch.arange(len(dataset.labels(domain)))) for domain in dataset.domains
        )
        return _split(dataset, trained, measured, *(_WORDS[domain] for domain in dataset.domains))
    if not domains and len(dataset.domains) > 1:
        choice = ", ".join(dataset.domains)
        raise ValueError(f"domain must be chosen with --domain, as {dataset.name} has several: {choice}")
    return domain_split(dataset, domains or dataset.domains, seed)


def domain_split(dataset: DomainDataset, domains: Sequence[str], seed: int) -> Split:
    """Nine tenths of each domain to train on, the rest to measure on."""
    parts: tuple[list[tuple[Images, Tensor]], list[tuple[Images, Tensor]]] = ([], [])
    for domain in domains:
        count = len(dataset.labels(domain))
        if count < 2:
            raise ValueError(f"domain {domain!r} of {dataset.name} has {count} images; at least 2 are needed")
        for part, positions in zip(parts, held_out(count, seed)):
            part.append(take(dataset, domain, positions))
    which = f"domain{'s' if len(domains) > 1 else ''} {', '.join(domains)}"
    trained, measured = map(_joined, parts)
    return _split(dataset, trained, measured, f"nine tenths of {which}", f"the other tenth of {which}")


@dataclass(frozen=True)
class _Joined:
    """The images of several parts, one after the other."""

    parts: tuple[Images, ...]
    starts: Tensor

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        which = torch.searchsorted(self.starts, indices, right=True) - 1
        pieces = [(number, which == number) for number in sorted(set(which.tolist()))]
        found = torch.cat([self.parts[number][indices[here] - self.starts[number]] for number, here in pieces])
        return found[torch.cat([here.nonzero().flatten() for _, here in pieces]).argsort()]


def _joined(parts: Sequence[tuple[Images, Tensor]]) -> tuple[Images, Tensor]:
    labels = torch.cat([labels for _, labels in parts])
    if len(parts) == 1:
        return parts[0][0], labels
    starts = torch.tensor([0, *(len(labels) for _, labels in parts[:-1])]).cumsum(0)
    return _Joined(tuple(images for images, _ in parts), starts), labels


def held_out(count: int, seed: int, share: float = _HELD_OUT) -> tuple[Tensor, Tensor]:
    """Split ``count`` positions at random into those to train on and a ``share`` to measure on.

    >>> trained, measured = held_out(10, seed=0)
    >>> len(trained), len(measured)
    (9, 1)
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    cut = max(1, round(share * count))
    return order[cut:].sort().values, order[:cut].sort().values


def take(dataset: DomainDataset, domain: str, positions: Tensor) -> tuple[Images, Tensor]:
    """The images of a domain at ``positions``, in memory if they fit, and their labels."""
    labels = torch.as_tensor(dataset.labels(domain), dtype=torch.int64)[positions]
    images: Images = DomainImages(dataset, domain, positions)
    channels, height, width = dataset.image_shape
    if len(positions) * channels * height * width <= _IN_MEMORY_BYTES:
        images = images[torch.arange(len(positions))]
    return images, labels


def _split(
    dataset: DomainDataset,
    trained: tuple[Images, Tensor],
    measured: tuple[Images, Tensor],
    trained_on: str,
    measured_on: str,
) -> Split:
    images, labels = trained
    data = TrainingData(
        dataset=dataset.name,
        trained_on=trained_on,
        trained_images=len(labels),
        measured_on=measured_on,
        measured_images=len(measured[1]),
        num_classes=dataset.num_classes,
        image_shape=dataset.image_shape,
        class_names=tuple(dataset.class_names),
    )
    return Split(images, labels, measured, data)
