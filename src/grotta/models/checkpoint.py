"""Training checkpoints: written whole or not at all, read without running any code in them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch

_ENTRIES = ("model", "optimizer", "recipe", "title", "data", "history")
_REMEDY = "remove it to start anew"


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save ``state`` (tensors and plain values) at ``path`` so that a failure leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        torch.save(state, part)
        part.replace(path)
    except RuntimeError as error:  # what the writer makes of a full disk
        raise OSError(f"{path} cannot be written: no room on the disk, or no permission") from error
    finally:
        part.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load what :func:`write_checkpoint` saved."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = "" if isinstance(error, pickle.UnpicklingError) else f" ({error})"
        raise ValueError(f"{path} is not a readable training checkpoint{reason}; {_REMEDY}") from error
    if not isinstance(state, dict) or not set(_ENTRIES) <= state.keys():
        raise ValueError(f"{path} is not a training checkpoint of this version of grotta; {_REMEDY}")
    return state
