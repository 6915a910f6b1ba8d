"""Model cards: what a trained source model is, how it was made and how good it is, for people and programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from grotta._version import __version__
from grotta.models.state_file import read_metadata
from grotta.models.training import EpochResult, Recipe

_ENTRIES = {"model", "parameters", "stored_as", "accuracy", "data", "start", "recipe", "command", "note", "epochs"}
_LISTED = ", ".join(sorted(_ENTRIES))


@dataclass(frozen=True)
class TrainingData:
    """What a model was trained and measured on: the data set's name, the parts used and their sizes."""

    dataset: str
    trained_on: str
    trained_images: int
    measured_on: str
    measured_images: int
    num_classes: int
    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...] = ()


def make_card(
    name: str,
    data: TrainingData,
    recipe: Recipe,
    history: Sequence[EpochResult],
    *,
    accuracy: float,
    parameters: int,
    start: str,
    stored_as: str,
    command: str,
    note: str = "",
) -> dict[str, Any]:
    """Put a card together; ``accuracy`` is that of the stored file, after any rounding, ``note`` free text."""
    return {
        "model": name,
        "parameters": parameters,
        "stored_as": stored_as,
        "accuracy": round(accuracy, 6),
        "data": asdict(data) | {"image_shape": list(data.image_shape), "class_names": list(data.class_names)},
        "start": start,
        "recipe": asdict(recipe),
        "command": command,
        "note": note,
        "versions": {
            "grotta": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
        },
        "epochs": [
            {"epoch": result.epoch + 1, "loss": round(result.loss, 4), "accuracy": round(result.accuracy, 6)}
            for result in history
        ],
    }


def read_card(path: Path) -> dict[str, Any] | None:
    """The card inside a file of weights; None if there is none."""
    text = read_metadata(path).get("card")
    if text is None:
        return None
    try:
        card = json.loads(text)
    except ValueError:
        card = None
    if not isinstance(card, dict) or not card.keys() >= _ENTRIES:
        raise ValueError(
            f"{path}: its metadata has a 'card' that grotta train did not write: expected JSON with {_LISTED}"
        )
    return card


def _about_the_start(start: str) -> list[str]:
    """Which file a second training started from: both files are named after the network."""
    file, bracket, _ = start.partition(" (`grotta train ")
    if not bracket:
        return []
    return [
        f"Here and in the command, `{file}` is the file of that first training, not the one that this card describes."
    ]


def card_markdown(card: Mapping[str, Any]) -> str:
    """Write a card of :func:`make_card` as Markdown."""
    data, recipe = card["data"], card["recipe"]
    wrong = 100 * (1 - card["accuracy"])
    lines = [
        f"# {card['model']}",
        "",
        f"{card['parameters']:,} parameters, stored as {card['stored_as']}.",
        f"Accuracy **{100 * card['accuracy']:.2f} %** (error {wrong:.2f} %) on {data['measured_on']}, "
        f"{data['measured_images']:,} images, measured on the stored file.",
        "",
        "## Data",
        f"{data['dataset']}: trained on {data['trained_on']}, {data['trained_images']:,} images of "
        f"{data['num_classes']} classes, shown as {'x'.join(map(str, data['image_shape']))} in [0, 1]; "
        "normalisation is inside the network. No image that accuracy is measured on was trained on. Within this "
        "training no epoch was picked by it: the last one's weights are kept, whatever they score.",
        *([card["note"]] if card["note"] else []),
        "",
        "## Recipe",
        f"Start: {card['start']}. SGD with Nesterov momentum, cross-entropy, a learning rate that rises linearly "
        "to its peak and falls linearly to zero; random shift and mirroring, no other augmentation.",
        *_about_the_start(card["start"]),
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| {setting} | {value} |" for setting, value in recipe.items()),
        "",
        "```",
        card["command"],
        "```",
        "",
        "## Versions",
        ", ".join(f"{what} {version}" for what, version in card["versions"].items()) + ".",
        "Another processor, thread count or version rounds differently, so the same command gives an equally good "
        "model, not the same bits.",
        "",
        "## Epochs",
        "| epoch | training loss | accuracy |",
        "|---:|---:|---:|",
        *(f"| {row['epoch']} | {row['loss']:.4f} | {100 * row['accuracy']:.2f} % |" for row in card["epochs"]),
        "",
    ]
    return "\n".join(lines)
