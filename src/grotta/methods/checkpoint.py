"""Adapters on disk: one safetensors file, written completely or not at all, and loaded only if it fits."""

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from grotta._files import replacing
from grotta._version import __version__
from grotta.methods.arguments import check_model
from grotta.methods.base import Adapter
from grotta.methods.registry import method_class
from grotta.methods.state import check_shared

FORMAT = "grotta-adapter"
FORMAT_VERSION = "1"


def save(adapter: Adapter, path: str | PathLike[str]) -> None:
    """Write ``adapter``'s state to ``path``. A kill at any instant leaves the old file or the new one."""
    check_shared(adapter)
    tensors = {key: tensor.contiguous().cpu() for key, tensor in adapter.state_dict().items()}
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "grotta": __version__,
        "torch": torch.__version__,
        "method": adapter.name,
        "arguments": json.dumps(adapter.arguments, default=lambda value: value.tolist()),
        "model": fingerprint(adapter.model),
    }
    metadata["checksum"] = _checksum(tensors, metadata)
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata)


class Saved(NamedTuple):
    """What a file holds of an adapter."""

    method: str
    arguments: dict[str, Any]
    state: dict[str, Tensor]


def load(path: str | PathLike[str], model: nn.Module) -> Adapter:
    """The adapter that was saved to ``path``, wrapped around the same ``model``, continuing where it stopped.

    A file of another model, of another version, or a damaged one is refused with an error that says which.
    """
    saved = read(path, model)
    adapter = method_class(saved.method)(model, **saved.arguments)
    adapter.load_state_dict(saved.state)
    return adapter


def read(path: str | PathLike[str], model: nn.Module) -> Saved:
    """What was saved to ``path`` of an adapter of ``model``; refuses what :func:`load` refuses."""
    model = check_model(model)
    metadata, tensors = _read(Path(path))
    if (found := fingerprint(model)) != metadata["model"]:
        raise ValueError(
            f"{path} was saved with another model: its weights have fingerprint {metadata['model'][:12]}, "
            f"the given model's {found[:12]}"
        )
    return Saved(metadata["method"], json.loads(metadata["arguments"]), tensors)


def fingerprint(model: nn.Module) -> str:
    """A digest of the names, shapes, types and values of all parameters and buffers of ``model``."""
    return _checksum({**dict(model.named_parameters()), **dict(model.named_buffers())})


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] = MappingProxyType({})) -> str:
    digest = hashlib.blake2b(digest_size=32)
    digest.update(json.dumps(dict(metadata), sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key].detach().cpu().contiguous()
        digest.update(f"{key}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"no adapter at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"{path} is a safetensors file, but not one that an adapter wrote")
            if (version := metadata.get("format_version")) != FORMAT_VERSION:
                raise ValueError(
                    f"{path} has format version {version}, written by grotta {metadata.get('grotta')}; "
                    f"this is grotta {__version__}, which reads version {FORMAT_VERSION}"
                )
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or not a safetensors file: {error}") from error
    claimed = metadata.pop("checksum", None)
    if _checksum(tensors, metadata) != claimed:
        raise ValueError(f"{path} is damaged: its contents do not match their checksum")
    return metadata, tensors
