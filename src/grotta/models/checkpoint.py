"""Training checkpoints: written whole or not at all, read without running any code in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

_ENTRIES = ("model", "optimizer", "recipe", "title", "data", "history")


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Save ``state`` (tensors and plain values) at ``path`` so that a kill leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    torch.save(state, part)
    part.replace(path)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load what :func:`write_checkpoint` saved."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is not a readable training checkpoint ({error})") from error
    if not isinstance(state, dict) or not set(_ENTRIES) <= state.keys():
        raise ValueError(f"{path} is not a training checkpoint of grotta")
    return state
