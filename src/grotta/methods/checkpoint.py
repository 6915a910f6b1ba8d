"""Adapters on disk: one safetensors file, written at once or not at all, read back only where it fits."""

import glob
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

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
    write_atomically(Path(path), lambda temporary: save_file(tensors, temporary, metadata))


def load(path: str | PathLike[str], model: nn.Module) -> Adapter:
    """The adapter that was saved to ``path``, wrapped around the same ``model``, going on where it stopped.

    A file of another model, of another version, or a damaged one is refused with an error that says which.
    """
    model = check_model(model)
    metadata, tensors = _read(Path(path))
    if (found := fingerprint(model)) != metadata["model"]:
        raise ValueError(
            f"{path} was saved with another model: its weights have fingerprint {metadata['model'][:12]}, "
            f"the given model's {found[:12]}"
        )
    adapter = method_class(metadata["method"])(model, **json.loads(metadata["arguments"]))
    adapter.load_state_dict(tensors)
    return adapter


def write_atomically(path: Path, write: Any) -> None:
    """Call ``write(temporary)``, then put the temporary file in the place of ``path``, safe against a crash."""
    path = path.resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part")
    temporary.touch()
    mode = temporary.stat().st_mode  # the one that the caller's umask gives; some writers choose another
    try:
        write(temporary)
        temporary.chmod(mode)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove_leftovers(path: Path) -> None:
    """Delete what processes of this machine that were killed while they wrote ``path`` have left behind."""
    start = f".{path.name}.{_host()}-"
    for leftover in path.parent.glob(f"{glob.escape(start)}*-*.part"):
        process = leftover.name.removeprefix(start).split("-")[0]
        if process.isdigit() and not _is_alive(int(process)):
            leftover.unlink(missing_ok=True)


def _host() -> str:
    """A short name for this machine: others may share the directory, and their processes cannot be asked after."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there is no signal there that only asks
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


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
