"""What a source model is trained and measured on: a data set, or one domain of it, as two parts that share nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import grotta.data
from grotta.data import DomainDataset
from grotta.data.decode import short_side
from grotta.data.imagenet import find_clean, find_training, list_clean
from grotta.data.pictures import PictureDataset
from grotta.data.roots import data_roots
from grotta.models.card import TrainingData
from grotta.models.training import Images

_IN_MEMORY_BYTES = 2 << 30
_HELD_OUT = 0.1


@dataclass(frozen=True)
class DomainImages:
    """Some images of one domain, read when they are asked for."""

    dataset: DomainDataset
    domain: str
    positions: Tensor

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """Give the images at ``indices`` as uint8 (len(indices), 3, H, W)."""
        return self.dataset.images(self.domain, self.positions[indices])


@dataclass(frozen=True)
class Split:
    """Images and labels to train on and to measure on, and what they are."""

    images: Images
    labels: Tensor
    measured: tuple[Images, Tensor]
    data: TrainingData


def open_source(name: str, domain: str | None, image_size: int, root: Path | None) -> DomainDataset:
    """Open data set ``name``; a clean set (``cifar10``) goes by the name of its corruptions (``cifar10-c``).

    With ImageNet it is the other way round, unless a ``domain`` of its corruptions is asked for: its clean pictures
    are files, as a data set's are.
    """
    if name == "imagenet" or (name == "imagenet-c" and domain is None):
        return open_imagenet(image_size, root)
    known = f"{name}-c" if f"{name}-c" in grotta.data.list_datasets() else name
    return grotta.data.load(known, root=root, image_size=image_size)


def open_imagenet(image_size: int, root: Path | None) -> DomainDataset:
    """ImageNet's training pictures as domain ``train`` and its validation pictures as ``val``, those that are here."""
    roots = data_roots(root)
    folders = {"train": find_training(roots), "val": find_clean(roots)}
    if folders["train"] is None:
        return grotta.data.load("imagenet", root=root, image_size=image_size)
    found = {domain: list_clean(folder) for domain, folder in folders.items() if folder is not None}
    classes = found["train"][0]
    # Pictures with a list of labels have numbers for names of classes: their places among the sorted folders.
    named = [names for names, listing in found.values() if not (listing.folder / "labels.json").is_file()]
    if any(names != classes for names in named):
        raise ValueError(f"the class folders of {folders['val']} are not those of {folders['train']}")
    listings = {domain: listing for domain, (_, listing) in found.items()}
    return PictureDataset(
        name="imagenet",
        domains=tuple(listings),
        class_names=classes,
        image_shape=(3, image_size, image_size),
        provenance="original",
        list_domain=listings.__getitem__,
        resize=short_side(image_size),
    )


def choose_split(dataset: DomainDataset, domain: str | None, root: Path | None, seed: int) -> Split:
    """The split of the chosen or only ``domain``, or what the data set itself keeps apart to train and to measure."""
    if domain is not None:
        return domain_split(dataset, domain, seed)
    if dataset.provenance != "original":
        return clean_split(dataset, root)
    if dataset.name == "imagenet" and dataset.domains == ("train", "val"):
        return imagenet_split(dataset)
    if len(dataset.domains) > 1:
        choice = ", ".join(dataset.domains)
        raise ValueError(f"domain: {dataset.name} has several; choose one with --domain: {choice}")
    return domain_split(dataset, dataset.domains[0], seed)


def domain_split(dataset: DomainDataset, domain: str, seed: int) -> Split:
    """Nine tenths of one domain to train on, the rest to measure on."""
    count = len(dataset.labels(domain))
    if count < 2:
        raise ValueError(f"domain {domain!r} of {dataset.name} has {count} images; at least 2 are needed")
    trained, measured = (take(dataset, domain, positions) for positions in held_out(count, seed))
    return _split(dataset, trained, measured, f"nine tenths of domain {domain}", f"the other tenth of domain {domain}")


def imagenet_split(dataset: DomainDataset) -> Split:
    """ImageNet's training pictures to train on, its validation pictures to measure on."""
    trained, measured = (
        take(dataset, domain, torch.arange(len(dataset.labels(domain)))) for domain in ("train", "val")
    )
    return _split(dataset, trained, measured, "the training pictures", "the validation pictures")


def clean_split(dataset: DomainDataset, root: Path | None) -> Split:
    """The clean training set behind a corrupted data set, measured on the clean test set."""
    clean = dataset.name.removesuffix("-c")
    trained = grotta.data.load_clean(clean, split="train", root=root)
    measured = grotta.data.load_clean(clean, split="test", root=root)
    return _split(dataset, trained, measured, "the clean training set", "the clean test set")


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
    """The images of a domain at ``positions``, in memory if there is room for them there, and their labels."""
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
    )
    return Split(images, labels, measured, data)
