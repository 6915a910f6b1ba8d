"""Weights of Keras networks as TensorFlow.js publishes them: ``model.json`` and the shards that it names, beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Keras's name of a tensor within its layer -> PyTorch's; a kernel is transposed as well.
_NAMES = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
# Height, width, in, out -> out, in, height, width, and in, out -> out, in.
_TRANSPOSED = {4: (3, 2, 0, 1), 2: (1, 0)}


def read_tfjs(path: Path) -> dict[str, Tensor]:
    """The float32 tensors of a ``model.json`` by PyTorch's names: layer ``conv1`` has ``conv1.weight``.

    Kernels of convolutions and dense layers have PyTorch's order of dimensions.

    Raises:
        ValueError: it is no such file, a shard is missing, or they have another length than the tensors.
    """
    try:
        groups = json.loads(path.read_text())["weightsManifest"]
        found = [pair for group in groups for pair in _group(path, group).items()]
    except (UnicodeDecodeError, json.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a model.json of TensorFlow.js ({type(error).__name__}: {error})") from error
    return dict(found)


def _group(path: Path, group: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of some shards, which follow each other without a gap, whatever shard they begin in."""
    for shard in group["paths"]:
        if Path(shard).name != shard:
            raise ValueError(f"{path} names a shard in another folder, {shard!r}; expected one beside it")
        if not (path.parent / shard).is_file():
            raise ValueError(f"{path} is incomplete: {shard} is missing beside it; download all of its shards")
    content = b"".join((path.parent / shard).read_bytes() for shard in group["paths"])
    tensors, start = {}, 0
    for entry in group["weights"]:
        if entry["dtype"] != "float32" or "quantization" in entry:
            raise ValueError(f"{path} has {entry['name']} in another type; expected float32, not quantised")
        count = int(np.prod(entry["shape"]))
        part = content[start : start + 4 * count]
        if len(part) < 4 * count:
            raise ValueError(f"{path} is damaged: its shards end within {entry['name']}; download them again")
        layer, _, kind = entry["name"].rpartition("/")
        values = np.frombuffer(part, "<f4").reshape(entry["shape"])
        if kind == "kernel":
            values = values.transpose(_TRANSPOSED[values.ndim])
        tensors[f"{layer}.{_NAMES[kind]}"] = torch.from_numpy(values.astype(np.float32, order="C", copy=True))
        start += 4 * count
    if start != len(content):
        raise ValueError(f"{path} is damaged: its shards are {len(content) - start} bytes too long; download again")
    return tensors
