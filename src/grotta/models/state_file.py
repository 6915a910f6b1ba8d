"""Reading and writing files of weights: safetensors, TensorFlow.js, and PyTorch's format without running its code."""

from __future__ import annotations

import hashlib
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from grotta import _files
from grotta.models.tfjs import read_tfjs

_WRAPPERS = ("state_dict", "model_state_dict", "model", "net")
_PREFIXES = ("module.", "model.")
# Some publishers store an error rate with the weights, as a NumPy number: that needs no code from the file.
_HARMLESS: list[Any] = [
    (np._core.multiarray.scalar, "numpy.core.multiarray.scalar"),  # type: ignore[attr-defined]
    np.dtype,
    type(np.dtype(np.float64)),
    type(np.dtype(np.float32)),
]
_INPUT_STATISTICS = ("mu", "sigma")
_CHECKSUM = "checksum"
# Publishers of PyTorch weights put the start of the file's sha256 into its name: resnet20-12fca82f.th.
_NAMED_DIGEST = re.compile(r"-([0-9a-f]{8})\.(?:th|pt|pth)$")


def read_state(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a file of weights, by their plain names.

    Takes safetensors, PyTorch files (always ``weights_only``) and the ``model.json`` of TensorFlow.js. A ``state_dict``
    (or ``model``) entry is opened, ``module.`` and ``model.`` prefixes are taken off, and the ``mu``/``sigma`` that
    some publishers store are left out: the architectures here know their own input statistics.

    A file of :func:`write_state` carries a checksum, and a published one may have the start of its sha256 in its name:
    with any byte changed it is refused.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged or something else (a saved web page, a truncated download, other contents).
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no file of weights at {path}")
    head = _head(path)
    _refuse_text(path, head)
    _check_named_digest(path)
    if path.suffix == ".json":
        return read_tfjs(path)
    contents = _read_safetensors(path) if _is_safetensors(head) else _read_torch(path)
    for key in _WRAPPERS:
        if isinstance(contents, Mapping) and isinstance(contents.get(key), Mapping):
            contents = contents[key]
    if not isinstance(contents, Mapping) or not contents:
        raise ValueError(f"{path} holds a {type(contents).__name__}, expected a mapping from names to tensors")
    return _plain_names(path, contents)


def read_metadata(path: str | Path) -> dict[str, str]:
    """The metadata of a safetensors file; empty for other files."""
    if not _is_safetensors(_head(Path(path))):
        return {}
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def write_state(
    path: str | Path, state: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None, *, half: bool = False
) -> None:
    """Write ``state`` as safetensors with a checksum, completely or not at all.

    With ``half`` matrices and kernels are stored as float16 (and loaded into float32 parameters again); statistics
    and biases, which are few and of wide range, stay as they are.
    """
    stored = {
        name: tensor.detach().cpu().to(torch.float16 if half and tensor.ndim > 1 else tensor.dtype).contiguous()
        for name, tensor in state.items()
    }
    notes = dict(metadata or {})
    _files.write(path, save(stored, metadata=notes | {_CHECKSUM: _checksum(stored, notes)}))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(512)


def _is_safetensors(head: bytes) -> bool:
    return head[8:9] == b"{"


def _refuse_text(path: Path, head: bytes) -> None:
    start = head.lstrip().lower()
    if not head:
        raise ValueError(f"{path} is empty; download it again")
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise ValueError(
            f"{path} is a web page, not a file of weights: its address answered with HTML; download it again"
        )
    if start.startswith(b"version https://git-lfs"):
        raise ValueError(f"{path} is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is a damaged or truncated safetensors file ({error})") from error
    written = metadata.pop(_CHECKSUM, None)
    if written is not None and written != _checksum(tensors, metadata):
        raise ValueError(f"{path} is damaged: its content does not match its checksum; train or download it again")
    return tensors


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Hex SHA-256 of names, types, shapes and bytes of the tensors, and of the metadata."""
    digest = hashlib.sha256(repr(sorted(metadata.items())).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_named_digest(path: Path) -> None:
    named = _NAMED_DIGEST.search(path.name)
    if named is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if not found.startswith(named[1]):
        raise ValueError(
            f"{path} is damaged: its sha256 starts with {found[:8]}, not with {named[1]} as its name says; download it "
            "again, or rename it if it is another file on purpose"
        )


def _read_torch(path: Path) -> Any:
    try:
        # The warnings are about pickles of other protocols, which are refused below.
        with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(_HARMLESS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        # The reader's own message advises running the code in the file, so it is left out.
        raise ValueError(
            f"{path} contains more than tensors, or is not a file of weights: expected only names and tensors, "
            "as safetensors or as torch.save(model.state_dict(), ...) writes them"
        ) from None
    except Exception as error:  # the reader raises a different type for every way a file can be damaged
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"{path} is not a readable file of weights: damaged, truncated, or something else ({reason})"
        ) from error


def _plain_names(path: Path, contents: Mapping[str, Any]) -> dict[str, Tensor]:
    unnamed = [name for name in contents if not isinstance(name, str)]
    if unnamed:
        raise ValueError(f"{path} is not a file of weights: {unnamed[0]!r} is not the name of a tensor, expected text")
    strangers = [name for name, value in contents.items() if not isinstance(value, Tensor)]
    if strangers:
        raise ValueError(f"{path} is not a file of weights: {strangers[0]!r} is not a tensor")
    state = {name: value for name, value in contents.items() if name.split(".")[-1] not in _INPUT_STATISTICS}
    while prefix := next((p for p in _PREFIXES if state and all(name.startswith(p) for name in state)), None):
        state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state
