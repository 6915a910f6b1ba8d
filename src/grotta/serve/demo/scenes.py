"""What ``grotta demo`` plays: three simulated cameras, and the parking cameras if they are available."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grotta.data import load_clean
from grotta.models import create_model
from grotta.serve.demo.cameras import CAMERAS
from grotta.serve.demo.parking import CAMERAS as PARKING_CAMERAS
from grotta.serve.demo.parking import LABELS, find_parking, recorded_batches
from grotta.serve.demo.play import BATCH, Scene

CLOTHES, PARKING = "clothes", "parking"


@dataclass
class Show:
    """The scenes, and the models that a server needs for them."""

    scenes: list[Scene] = field(default_factory=list)
    models: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def write_settings(self, file: Path) -> None:
        """The models as ``grotta serve`` reads them."""
        lines = [f"[models.{name}]\n" + _table(values) for name, values in self.models.items()]
        file.write_text("\n".join(lines))


def make_show() -> Show:
    """All scenes that can be played here."""
    show = Show()
    network = create_model("fashion_resnet8", weights="bundled")
    images, labels = load_clean("fashion")
    pixels, known = images.permute(0, 2, 3, 1).contiguous().numpy(), labels.numpy()
    show.models[CLOTHES] = {"path": "fashion_resnet8"}
    for camera in CAMERAS:
        show.scenes.append(Scene(camera.name, camera.batches(pixels, known, BATCH), CLOTHES, network))
    if (found := find_parking()) is not None:
        weights, pictures = found
        network = create_model("resnet20", weights=weights)
        show.models[PARKING] = {"path": str(weights), "labels": list(LABELS)}
        for name in PARKING_CAMERAS:
            show.scenes.append(Scene(name, recorded_batches(pictures, name, BATCH), PARKING, network))
    return show


def _table(values: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
