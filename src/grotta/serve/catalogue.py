"""The models that a server has: networks with their class names, image size and method."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from grotta.methods.base import Adapter
from grotta.methods.registry import create, method_class
from grotta.models import create_model, list_models
from grotta.models.bundled import bundled_path
from grotta.models.card import read_card
from grotta.models.weights import classifier_name
from grotta.serve.names import check_model_name

_SMALL = 32  # side of the images of CIFAR networks; the others take 224
_LARGE = ("resnet18", "resnet34", "resnet50", "resnet101", "mobilenet_v2")


@dataclass(frozen=True)
class ModelSettings:
    """How one model is served.

    ``path`` is a bundled network's name, ``NETWORK@WEIGHTS``, or a file written by ``grotta train``, which knows its
    network.
    """

    name: str
    path: str
    method: str = "grotta+"
    preset: str = ""  # of the method; without one, what answers soonest: "lite" where there is one, else "paper"
    options: Mapping[str, Any] = field(default_factory=dict)
    image_size: int | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedModel:
    """A network that is shared by all of its streams."""

    settings: ModelSettings
    network: nn.Module
    shape: tuple[int, int, int]
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name in addresses."""
        return self.settings.name

    @property
    def preset(self) -> str:
        """The preset of the method."""
        return self.settings.preset or ("lite" if "lite" in method_class(self.settings.method).presets else "paper")

    @property
    def asks_source(self) -> bool:
        """Whether the method itself asks the untouched model."""
        return method_class(self.settings.method).contains_source

    def adapter(self) -> Adapter:
        """A new stream's adapter."""
        method, options = self.settings.method, dict(self.settings.options)
        return create(method, self.network, preset=self.preset, **options)

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """What a new stream's adapter is made with."""
        return self.adapter().arguments


def load_model(settings: ModelSettings) -> ServedModel:
    """Load a network and try its method on it, so that mistakes are reported at the start.

    >>> load_model(ModelSettings("clothes", "fashion_resnet8")).labels[:2]
    ('T-shirt/top', 'Trouser')
    """
    check_model_name(settings.name)
    architecture, weights, card = _find(settings)
    network = create_model(architecture, weights=weights)
    size = settings.image_size or (224 if architecture in _LARGE else _SMALL)
    shape = tuple(card["data"]["image_shape"]) if card and settings.image_size is None else (3, size, size)
    count = _classes(network)
    labels = settings.labels or _labels(card, count)
    if len(labels) != count:
        raise ValueError(f"model {settings.name}: labels must name its {count} classes, got {len(labels)}")
    served = ServedModel(settings, network, shape, labels)
    served.adapter()
    return served


def _find(settings: ModelSettings) -> tuple[str, str | Path, dict[str, Any] | None]:
    """Architecture, weights and card behind a path."""
    architecture, at, file = settings.path.partition("@")
    if at:
        if not Path(file).is_file():
            raise ValueError(f"model {settings.name}: no file of weights at {file}")
        return architecture, Path(file), _card(Path(file))
    if settings.path in list_models(bundled=True):
        return settings.path, "bundled", read_card(bundled_path(settings.path))
    if not Path(settings.path).is_file():
        bundled = ", ".join(list_models(bundled=True))
        raise ValueError(
            f"model {settings.name}: expected a bundled network ({bundled}), NETWORK@WEIGHTS, or a file written by "
            f"grotta train, got {settings.path!r}"
        )
    if (card := _card(Path(settings.path))) is None:
        raise ValueError(f"model {settings.name}: {settings.path} does not name its network: use NETWORK@WEIGHTS")
    return card["model"], Path(settings.path), card


def _card(file: Path) -> dict[str, Any] | None:
    return read_card(file) if file.suffix == ".safetensors" else None


def _classes(network: nn.Module) -> int:
    layer = network.get_submodule(classifier_name(network))
    return int(layer.weight.shape[0])  # type: ignore[index]


def _labels(card: Mapping[str, Any] | None, count: int) -> tuple[str, ...]:
    names = tuple(card["data"].get("class_names", ())) if card else ()
    return names if len(names) == count else tuple(map(str, range(count)))
