"""Networks by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from grotta._check import check_whole
from grotta.models.bundled import bundled_names, bundled_path
from grotta.models.compact import cifar10_resnet, fashion_resnet8
from grotta.models.initialise import initialise
from grotta.models.mobilenet import mobilenet_v2
from grotta.models.resnet import imagenet_resnet
from grotta.models.resnet_cifar import option_a, projected
from grotta.models.resnet_gn import resnet26_gn
from grotta.models.resnet_keras import resnet50_keras
from grotta.models.resnext import resnext29_4x32d
from grotta.models.state_file import read_state
from grotta.models.vit import fashion_vit
from grotta.models.weights import copy_state, num_classes_of
from grotta.models.wide_resnet import wrn28_10

_BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "cifar10_resnet": cifar10_resnet,
    "fashion_resnet8": fashion_resnet8,
    "fashion_vit": fashion_vit,
    "mobilenet_v2": mobilenet_v2,
    "resnet26_gn": resnet26_gn,
    "resnet50_keras": resnet50_keras,
    "resnext29_4x32d": resnext29_4x32d,
    "wrn28_10": wrn28_10,
    **{f"resnet{depth}": option_a(depth) for depth in (20, 32, 44, 56, 110)},
    **{f"resnet{depth}_proj": projected(depth) for depth in (20, 32, 44, 56, 110)},
    **{f"resnet{depth}": imagenet_resnet(depth) for depth in (18, 34, 50, 101)},
}


def list_models(pattern: str = "*", *, bundled: bool = False) -> list[str]:
    """Names of the networks that match ``pattern`` (wildcards ``*``, ``?``, ``[...]``).

    >>> list_models("wrn*")
    ['wrn28_10']
    """
    names = sorted(set(_BUILDERS) & set(bundled_names()) if bundled else _BUILDERS)
    return fnmatch.filter(names, pattern)


def create_model(
    name: str, weights: str | Path | None = None, num_classes: int | None = None, *, seed: int = 0
) -> nn.Module:
    """Build a network: float (B, 3, H, W) in [0, 1] to logits (B, num_classes), normalisation inside.

    Args:
        name: one of :func:`list_models`.
        weights: None for weights drawn from ``seed``, ``"bundled"`` for those in the package, or a file as its
            authors published it (safetensors, PyTorch, or the ``model.json`` of TensorFlow.js).
        num_classes: number of outputs; by default that of the weights, or the one the network was made for.
        seed: of the drawn weights.

    The model is in evaluation mode.

    >>> create_model("resnet20", num_classes=5)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """
    if name not in _BUILDERS:
        close = ", ".join(fnmatch.filter(_BUILDERS, f"*{name}*")) or ", ".join(list_models())
        raise ValueError(f"name must be one of {close}, got {name!r}")
    if num_classes is not None:
        check_whole("num_classes", num_classes, at_least=1)
    with torch.device("meta"):
        model = _BUILDERS[name]() if num_classes is None else _BUILDERS[name](num_classes)
    if weights is None:
        return _fill(model, seed)
    path = _path(name, weights)
    state = read_state(path)
    there = num_classes_of(model, state)
    if num_classes is None and there is not None:
        with torch.device("meta"):
            model = _BUILDERS[name](there)
    model = _fill(model, seed)
    copy_state(model, state, f"{path} does not fit {name}")
    return model


def weights_classes(name: str, weights: str | Path) -> int | None:
    """The number of classes of ``weights`` (``"bundled"`` or a file) for the network ``name``; None if unknown.

    >>> weights_classes("fashion_resnet8", "bundled")
    10
    """
    with torch.device("meta"):
        model = _BUILDERS[name]()
    return num_classes_of(model, read_state(_path(name, weights)))


def _path(name: str, weights: str | Path) -> Path:
    return bundled_path(name) if weights == "bundled" else Path(weights)


def _fill(model: nn.Module, seed: int) -> nn.Module:
    model.to_empty(device="cpu")
    initialise(model, torch.Generator().manual_seed(seed))
    return model.eval()
