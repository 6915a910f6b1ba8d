"""The method of a cell, created from its spec."""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from grotta import data, methods
from grotta.bench.inputs.network import load_network, network_name
from grotta.bench.inputs.opened import open_dataset
from grotta.bench.process import machine_memory
from grotta.bench.spec import CellSpec
from grotta.memory import CSTU, PBRS, CategoryBalancedBank

# A domain shorter than this many times the memory ends before the memory has forgotten the previous domain.
LONG_ENOUGH = 3


def make_adapter(spec: CellSpec, model: nn.Module, dataset: data.DomainDataset) -> methods.Adapter:
    """The method of a cell, as newly created; a ``ValueError`` if its memory would not fit on this machine."""
    options = {key: list(value) if isinstance(value, tuple) else value for key, value in spec.options}
    try:
        adapter = methods.create(spec.method, model, dataset.num_classes, preset=spec.preset, seed=spec.seed, **options)
    except (MemoryError, OverflowError) as error:
        raise ValueError(f"the options must fit in this machine's memory, got {dict(spec.options)}") from error
    needed, there = _room(adapter.memory) * math.prod(dataset.image_shape), machine_memory()
    if needed > there:
        raise ValueError(
            f"capacity must fit in this machine's memory of {there / 1e9:.0f} GB, got {_room(adapter.memory)} images, "
            f"which take {needed / 1e9:.0f} GB"
        )
    return adapter


def check_options(spec: CellSpec, data_root: Path | None) -> None:
    """Raise a ``ValueError`` or ``TypeError`` if the method does not accept the spec's options."""
    dataset = open_dataset(spec, data_root)
    name = network_name(spec.model, dataset)
    make_adapter(spec, load_network(name, dataset.num_classes, data_root), dataset)


@torch.inference_mode()
def source_agreement(model: nn.Module, adapter: methods.Adapter, images: Tensor, predictions: Tensor) -> float:
    """The share of ``predictions`` (B,) that agree with the source network, which never adapts."""
    return float((model(adapter.to_input(images)).argmax(1) == predictions).float().mean())


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
    """How many images a full memory holds; 0 if there is no memory."""
    if isinstance(memory, CategoryBalancedBank):
        return memory.room * memory.num_classes  # its capacity, rounded up to the same for every class
    return memory.capacity if isinstance(memory, CSTU | PBRS) else 0
