"""Training checkpoints: written completely or not at all, with a digest, and read without running any code in them."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from grotta import _files

_ENTRIES = ("model", "optimizer", "recipe", "title", "data", "history")
_HEADER = b"grotta training checkpoint 2 sha256 "
_REMEDY = "remove it to start over"


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save ``state`` (tensors and plain values) at ``path`` so that a failure leaves the old file or the new one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    _files.write(path, _HEADER + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load what :func:`write_checkpoint` saved; a file with any byte changed is a ``ValueError``."""
    try:
        found = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} is not a readable training checkpoint ({error.strerror}); {_REMEDY}") from error
    header, _, content = found.partition(b"\n")
    if not header.startswith(_HEADER):
        raise ValueError(f"{path} is not a training checkpoint of this version of grotta; {_REMEDY}")
    if header.removeprefix(_HEADER) != hashlib.sha256(content).hexdigest().encode():
        raise ValueError(f"{path} is damaged: its content does not match its checksum; {_REMEDY}")
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not set(_ENTRIES) <= state.keys():
        raise ValueError(f"{path} is not a training checkpoint of this version of grotta; {_REMEDY}")
    return state
