"""What a cell runs on, opened: the data set, its labels, the stream and the network."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grotta import data, streams
from grotta.bench.inputs.network import load_network, network_classes, network_name
from grotta.bench.spec import CellSpec
from grotta.streams.generate import period_sizes

if TYPE_CHECKING:
    from torch import nn

STREAMS = ("ptta", "rotta", "exhaustive", "iid", "recorded")
WITHOUT_GAMMA = ("iid", "recorded")  # streams that draw no label shift


@dataclass(frozen=True)
class CellInputs:
    """What a cell runs on; for equal data, domains, gamma, period and stream seed the stream is the same."""

    dataset: data.DomainDataset
    labels: tuple[npt.NDArray[np.int64], ...]
    stream: streams.Stream
    model: "nn.Module"
    model_name: str

    @cached_property
    def data_fingerprint(self) -> str:
        """A digest of the images."""
        return self.dataset.fingerprint()

    @property
    def lengths(self) -> dict[str, int]:
        """How many images of the stream each domain has."""
        return {name: len(indices) for name, indices in zip(self.dataset.domains, self.stream.indices)}

    @property
    def distinct(self) -> int:
        """How many different images the stream shows."""
        return sum(len(np.unique(indices)) for indices in self.stream.indices)

    def batch_starts(self, spec: CellSpec) -> tuple[int, ...]:
        """How many batches come before each domain."""
        sizes = [-(-length // spec.batch_size) for length in self.lengths.values()]
        return tuple(int(start) for start in np.cumsum([0, *sizes])[:-1])

    def times(self, domain: int, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """When images of a domain were taken, in seconds since 1970-01-01; None for streams that are not recorded."""
        moments = self.dataset.moments.get(self.dataset.domains[domain])
        return None if moments is None else moments.times[indices].astype("datetime64[s]").astype(np.int64)

    def periods(self, period: int) -> npt.NDArray[np.int32]:
        """The period, counted over the whole stream, of each image."""
        sizes = np.concatenate([period_sizes(length, period) for length in self.lengths.values()])
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def open_inputs(spec: CellSpec, data_root: Path | None, device: str = "cpu") -> CellInputs:
    """Everything that a cell runs on, found on this machine, with the network on ``device``."""
    dataset = open_dataset(spec, data_root)
    name = network_name(spec.model, dataset)
    return make_inputs(spec, dataset, load_network(name, dataset.num_classes, data_root).to(device), name)


def open_dataset(spec: CellSpec, data_root: Path | None) -> data.DomainDataset:
    """The data set of a cell, with its domains in stream order; without labels, it has the network's classes."""
    dataset = load_dataset(spec, data_root, keep_decoded=True)
    if dataset.closed:
        return dataset
    return with_classes(dataset, network_classes(network_name(spec.model, dataset), data_root))


def load_dataset(
    spec: CellSpec, data_root: Path | None, *, download: bool = True, keep_decoded: bool = False
) -> data.DomainDataset:
    """The data set that a spec names, in recorded order if that is its stream."""
    return data.load(
        spec.dataset,
        root=data_root,
        domains=spec.domains,
        image_size=spec.image_size,
        download=download,
        keep_decoded=keep_decoded,
        recorded=spec.stream == "recorded",
    )


def with_classes(dataset: data.DomainDataset, count: int) -> data.DomainDataset:
    """A data set that does not know all its classes, extended to ``count`` of them."""
    if dataset.closed or count <= dataset.num_classes:
        return dataset
    return replace(dataset, class_names=(*dataset.class_names, *map(str, range(dataset.num_classes, count))))


def make_inputs(spec: CellSpec, dataset: data.DomainDataset, model: "nn.Module", name: str) -> CellInputs:
    """What a cell runs on, given its data and its network."""
    labels = read_labels(dataset)
    return CellInputs(dataset, labels, make_stream(spec, labels, dataset.num_classes), model, name)


def read_labels(dataset: data.DomainDataset) -> tuple[npt.NDArray[np.int64], ...]:
    """The labels of each domain's images, of which a stream takes :func:`taken`."""
    return tuple(dataset.labels(domain) for domain in dataset.domains)


def taken(labels: npt.NDArray[np.int64], images: int) -> npt.NDArray[np.int64]:
    """Which images of a domain are meant by at most ``images`` of them, 0 for all: positions, growing.

    The first ones; but where these lack classes, as in folders that are sorted by class, evenly spaced ones if they
    have more.

    >>> taken(np.array([0, 1, 1, 0, 1]), 3), taken(np.array([0, 0, 0, 1, 1, 2]), 3)
    (array([0, 1, 2]), array([0, 2, 4]))
    """
    count = len(labels)
    if not images or images >= count:
        return np.arange(count)
    first, spaced = np.arange(images), np.arange(images) * count // images
    return spaced if len(np.unique(labels[spaced])) > len(np.unique(labels[first])) else first


def make_stream(spec: CellSpec, labels: tuple[npt.NDArray[np.int64], ...], num_classes: int) -> streams.Stream:
    """The stream that a spec names; ``labels`` are those of all images."""
    if spec.stream == "recorded":  # as filmed, so the first ones whatever they show
        filmed = [own[: spec.images or None] for own in labels]
        return streams.recorded(filmed, spec.domains, num_classes, period=spec.period)
    rows = [taken(own, spec.images) for own in labels]
    stream = _drawn(spec, tuple(own[chosen] for own, chosen in zip(labels, rows)), num_classes)
    return replace(stream, indices=tuple(chosen[own] for chosen, own in zip(rows, stream.indices)))


def _drawn(spec: CellSpec, labels: tuple[npt.NDArray[np.int64], ...], num_classes: int) -> streams.Stream:
    """A stream of all images of which there are ``labels``."""
    if spec.stream == "iid":
        return streams.iid(labels, num_classes, period=spec.period, seed=spec.stream_seed)
    make = {"ptta": streams.ptta, "rotta": streams.rotta, "exhaustive": streams.exhaustive}[spec.stream]
    return make(labels, num_classes, spec.gamma, period=spec.period, seed=spec.stream_seed)
