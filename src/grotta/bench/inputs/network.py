"""The network of a cell: ``NAME`` with its bundled weights, or ``NAME@WEIGHTS``."""

import contextlib
from pathlib import Path

from torch import nn

from grotta import data, models
from grotta.data.roots import data_roots
from grotta.methods.checkpoint import fingerprint
from grotta.models.bundled import bundled_path
from grotta.models.card import read_card
from grotta.models.registry import weights_classes


def network_name(model: str, dataset: data.DomainDataset) -> str:
    """``model``, or the data set's own network if it is empty."""
    if not model and not dataset.default_model:
        raise ValueError(
            f"model must be given, {dataset.name} comes with no network: NAME@WEIGHTS, where NAME is one of "
            f"{', '.join(models.list_models())}"
        )
    return model or dataset.default_model


def load_network(name: str, num_classes: int, data_root: Path | None = None) -> nn.Module:
    """The network ``NAME`` or ``NAME@WEIGHTS`` for data with this many classes.

    A relative ``WEIGHTS`` that is not a file here is looked for in the data roots, so that a result does not name a
    folder of the machine that made it.
    """
    architecture, weights = find_weights(name, data_root)
    return models.create_model(architecture, weights=weights or "bundled", num_classes=num_classes)


def check_network(name: str, data_root: Path | None = None) -> None:
    """Raise a ``ValueError`` if there is no network ``NAME`` or ``NAME@WEIGHTS``; the weights are not read.

    >>> check_network("fashion_resnet8")
    """
    architecture, weights = find_weights(name, data_root)
    if architecture not in models.list_models():
        raise ValueError(f"model must be one of {', '.join(models.list_models())}, got {architecture!r}")
    if weights and not Path(weights).is_file():
        raise ValueError(f"model must name an existing file of weights, got {weights}")
    if not weights and architecture not in models.list_models(bundled=True):
        raise ValueError(f"model must be {architecture}@WEIGHTS, got {name!r} (no weights come with {architecture})")


def network_classes(name: str, data_root: Path | None) -> int:
    """How many classes the network ``NAME`` or ``NAME@WEIGHTS`` was trained for."""
    architecture, weights = find_weights(name, data_root)
    classes = weights_classes(architecture, weights or "bundled")
    if classes is None:
        raise ValueError(f"model must say how many classes it has, for data without labels; {name} does not")
    return classes


def check_classes(name: str, dataset: data.DomainDataset, data_root: Path | None) -> None:
    """Raise a ``ValueError`` if the network ``NAME`` or ``NAME@WEIGHTS`` was trained for other classes.

    Their number is known of every network, their names and order of those that `grotta train` made, bundled or not.
    """
    architecture, weights = find_weights(name, data_root)
    classes, card = None, None
    with contextlib.suppress(OSError, ValueError):  # the cells will say what is wrong with the file
        classes = weights_classes(architecture, weights or "bundled")
        card = read_card(Path(weights) if weights else bundled_path(architecture))
    fits = classes is None or (classes == dataset.num_classes if dataset.closed else classes >= dataset.num_classes)
    if not fits:
        raise ValueError(
            f"model must have the {dataset.num_classes} classes of {dataset.name}, got {name}, which was trained for "
            f"{classes}; train one with `grotta train` and give it as NAME@WEIGHTS"
        )
    known, here = tuple(card["data"].get("class_names", ())) if card else (), tuple(dataset.class_names)
    if dataset.closed and known != here and set(known) & set(here):  # names of another kind say nothing
        raise ValueError(
            f"model must be trained for the classes of {dataset.name}, {', '.join(here)}, in this order; got {name}, "
            f"which was trained for {', '.join(known)} (a csv: list may have the numbers of classes as labels)"
        )


def find_weights(name: str, data_root: Path | None) -> tuple[str, str]:
    """The architecture's name, and the file of weights, if one is named."""
    architecture, _, weights = name.partition("@")
    if weights and not Path(weights).is_file():
        found = [root / weights for root in data_roots(data_root) if (root / weights).is_file()]
        weights = str(found[0]) if found else weights
    return architecture, weights


def short_fingerprint(model: nn.Module) -> str:
    """The start of the digest of a network's weights, enough to tell them from others."""
    return fingerprint(model)[:16]
