"""The source models that are bundled with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from grotta.models.card import read_card

_ASSETS = Path(str(resources.files("grotta.models"))) / "assets"


def bundled_names() -> list[str]:
    """Names of the models whose trained weights are inside the package."""
    return sorted(path.stem for path in _ASSETS.glob("*.safetensors"))


def bundled_path(name: str) -> Path:
    """File with the bundled weights of model ``name``."""
    path = _ASSETS / f"{name}.safetensors"
    if not path.is_file():
        known = ", ".join(bundled_names())
        raise ValueError(f"no weights are bundled for {name!r}, only for {known}; give a file instead")
    return path


def model_card(name: str) -> dict[str, Any]:
    """The card of a bundled model: data, recipe, seed, accuracy, versions, command."""
    card = read_card(bundled_path(name))
    if card is None:
        raise ValueError(f"the bundled weights of {name!r} carry no card")
    return card
