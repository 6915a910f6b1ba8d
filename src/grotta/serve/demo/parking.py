"""The parking cameras of PKLot, if their pictures and a network trained on one of them are available."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from grotta.data.dataset import DomainDataset
from grotta.data.errors import DataNotFoundError
from grotta.data.options import Options
from grotta.data.registry import find_entry
from grotta.data.roots import data_roots
from grotta.serve.protocol.tensors import Array

NETWORK = "models/pklot-pucpr-sunny/resnet20.safetensors"  # in a data root: grotta reproduce parking trains it
LABELS = ("empty", "occupied")
CAMERAS = ("ufpr04", "ufpr05")  # the network has seen neither
SIZE = 32


def find_parking() -> tuple[Path, DomainDataset] | None:
    """Network and pictures, None unless both are in a data root."""
    network = next((root / NETWORK for root in data_roots() if (root / NETWORK).is_file()), None)
    open_recorded = find_entry("pklot").record
    if network is None or open_recorded is None:
        return None
    try:
        return network, open_recorded(Options(data_roots(), domains=CAMERAS, image_size=SIZE, download=False))
    except (DataNotFoundError, ValueError):
        return None


def recorded_batches(pictures: DomainDataset, camera: str, size: int) -> Iterator[tuple[Array, Array]]:
    """Batches of uint8 images (size, 3, H, W) in the order they were filmed, and their labels, over and over."""
    labels = pictures.labels(camera)
    while True:
        for start in range(0, len(labels) - size + 1, size):
            places = np.arange(start, start + size)
            yield pictures.images(camera, places).numpy(), labels[places]
