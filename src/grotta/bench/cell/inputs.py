"""From a spec to what it names: the data set, the stream, the network and the method."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from grotta import data, methods, models, streams
from grotta.bench import experiments
from grotta.bench.spec import CellSpec
from grotta.data.registry import find_entry
from grotta.data.roots import data_roots
from grotta.memory import CSTU, PBRS, CategoryBalancedBank
from grotta.methods.checkpoint import fingerprint
from grotta.streams.generate import period_sizes

STREAMS = ("ptta", "rotta", "exhaustive", "iid")
# A domain shorter than this many times the memory is over before the memory has forgotten the domain before it.
LONG_ENOUGH = 3


@dataclass(frozen=True)
class Setting:
    """What a cell runs on; for equal data, domains, gamma, period and stream seed the stream is the same."""

    dataset: data.DomainDataset
    labels: tuple[npt.NDArray[np.int64], ...]
    stream: streams.Stream
    model: nn.Module
    model_name: str

    @cached_property
    def data_fingerprint(self) -> str:
        """A digest of the pictures."""
        return self.dataset.fingerprint()

    @property
    def lengths(self) -> dict[str, int]:
        """How many images of the stream each domain has."""
        return {name: len(indices) for name, indices in zip(self.dataset.domains, self.stream.indices)}

    def periods(self, period: int) -> npt.NDArray[np.int32]:
        """The period, counted over the whole stream, of each image."""
        sizes = np.concatenate([period_sizes(length, period) for length in self.lengths.values()])
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def check(spec: CellSpec) -> None:
    """Raise a ``ValueError`` if the spec names a method, preset, stream or data set that does not exist."""
    check_preset(spec.preset, spec.method)
    if spec.stream not in STREAMS:
        raise ValueError(f"stream: expected one of {', '.join(STREAMS)}, got {spec.stream!r}")
    find_entry(spec.dataset, "dataset")


def check_preset(preset: str, method: str) -> None:
    """Raise a ``ValueError`` if the method does not have the preset; it says which do.

    >>> check_preset("fast", "grotta")
    """
    experiments.prepare(method)
    known = methods.method_class(method).presets
    if preset not in known:
        having = [name for name in methods.list_methods() if preset in methods.method_class(name).presets]
        which = f"{', '.join(having)} alone {'has' if len(having) == 1 else 'have'} it" if having else "none has it"
        raise ValueError(f"preset: method {method!r} has no {preset!r}, but {', '.join(known)}; {which}")


def check_device(device: str) -> None:
    """Raise a ``ValueError`` if numbers cannot be kept and read on ``device``.

    >>> check_device("cpu")
    """
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"device: {device!r} cannot be used here ({reason}); expected cpu, cuda, cuda:1, ..."
        ) from None


def open_dataset(spec: CellSpec, data_root: Path | None) -> data.DomainDataset:
    """The data set of a cell, with its domains in stream order."""
    return data.load(spec.dataset, root=data_root, domains=spec.domains, image_size=spec.image_size, keep_decoded=True)


def open_setting(spec: CellSpec, data_root: Path | None, device: str = "cpu") -> Setting:
    """Everything that a cell runs on, with the network on ``device``."""
    check(spec)
    check_device(device)
    dataset = open_dataset(spec, data_root)
    name = model_name(spec.model, dataset)
    return make_setting(spec, dataset, load_model(name, dataset.num_classes, data_root).to(device), name)


def make_setting(spec: CellSpec, dataset: data.DomainDataset, model: nn.Module, name: str) -> Setting:
    """What a cell runs on, given its data and its network."""
    labels = tuple(dataset.labels(domain) for domain in dataset.domains)
    return Setting(dataset, labels, make_stream(spec, labels, dataset.num_classes), model, name)


def make_stream(spec: CellSpec, labels: tuple[npt.NDArray[np.int64], ...], num_classes: int) -> streams.Stream:
    """The stream that a spec names."""
    if spec.stream == "iid":
        return streams.iid(labels, num_classes, period=spec.period, seed=spec.stream_seed)
    make = {"ptta": streams.ptta, "rotta": streams.rotta, "exhaustive": streams.exhaustive}[spec.stream]
    return make(labels, num_classes, spec.gamma, period=spec.period, seed=spec.stream_seed)


def model_name(model: str, dataset: data.DomainDataset) -> str:
    """``model``, or the data set's own network if it is empty."""
    if not model and not dataset.default_model:
        raise ValueError(
            f"model: no network comes with {dataset.name}; give one as NAME@WEIGHTS, with a NAME out of "
            f"{', '.join(models.list_models())}"
        )
    return model or dataset.default_model


def load_model(name: str, num_classes: int, data_root: Path | None = None) -> nn.Module:
    """The network ``NAME`` or ``NAME@WEIGHTS`` for data of so many classes.

    A relative ``WEIGHTS`` that is not a file here is looked for in the data roots, so that a result names no folder of
    the machine that made it.
    """
    architecture, weights = find_weights(name, data_root)
    return models.create_model(architecture, weights=weights or "bundled", num_classes=num_classes)


def check_model(name: str, data_root: Path | None = None) -> None:
    """Raise a ``ValueError`` if there is no network ``NAME`` or ``NAME@WEIGHTS``; its weights are not read.

    >>> check_model("fashion_resnet8")
    """
    architecture, weights = find_weights(name, data_root)
    if architecture not in models.list_models():
        raise ValueError(f"model: no network {architecture!r}; there are: {', '.join(models.list_models())}")
    if weights and not Path(weights).is_file():
        raise ValueError(f"model: no file of weights at {weights}")
    if not weights and architecture not in models.list_models(bundled=True):
        raise ValueError(f"model: no weights come with {architecture}; give a file of them as {architecture}@WEIGHTS")


def find_weights(name: str, data_root: Path | None) -> tuple[str, str]:
    """The network's name, and the file of its weights, if one is named."""
    architecture, _, weights = name.partition("@")
    if weights and not Path(weights).is_file():
        found = [root / weights for root in data_roots(data_root) if (root / weights).is_file()]
        weights = str(found[0]) if found else weights
    return architecture, weights


def short_fingerprint(model: nn.Module) -> str:
    """The start of the digest of a network's weights, enough to tell them from others."""
    return fingerprint(model)[:16]


def make_adapter(spec: CellSpec, model: nn.Module, num_classes: int) -> methods.Adapter:
    """The method of a cell, as newly created."""
    options = {key: list(value) if isinstance(value, tuple) else value for key, value in spec.options}
    return methods.create(spec.method, model, num_classes, preset=spec.preset, seed=spec.seed, **options)


def check_options(spec: CellSpec, data_root: Path | None) -> None:
    """Raise a ``ValueError`` or ``TypeError`` if the method does not take the spec's options."""
    dataset = open_dataset(spec, data_root)
    name = model_name(spec.model, dataset)
    make_adapter(spec, load_model(name, dataset.num_classes, data_root), dataset.num_classes)


def warnings_about(adapter: methods.Adapter, lengths: Mapping[str, int]) -> tuple[str, ...]:
    """What a reader of a result should know, given how many images of the stream each domain has."""
    room = _room(adapter.memory)
    short = {name: length for name, length in lengths.items() if length < LONG_ENOUGH * room}
    if not short:
        return ()
    name, length = min(short.items(), key=lambda item: item[1])
    return (
        f"{len(short)} of {len(lengths)} domains are shorter than {LONG_ENOUGH} times the memory of {room} images "
        f"({name} has {length}): the memory still holds earlier domains most of the time",
    )


def _room(memory: object) -> int:
    """How many images a memory holds when it is full; none if there is no memory."""
    if isinstance(memory, CategoryBalancedBank):
        return memory.room * memory.num_classes  # its capacity, rounded up to the same for every class
    return memory.capacity if isinstance(memory, CSTU | PBRS) else 0
