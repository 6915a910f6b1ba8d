"""Methods by name."""

from collections.abc import Callable
from typing import Any

from torch import nn

from grotta.methods.base import Adapter

_METHODS: dict[str, type[Adapter]] = {}
_PUBLISHED = ("source", "bn", "pl", "tent", "lame", "cotta", "note", "ods", "rotta", "grotta")


def register(name: str) -> Callable[[type[Adapter]], type[Adapter]]:
    """Class decorator that makes a method known to :func:`create` and the benchmark under ``name``."""

    def add(cls: type[Adapter]) -> type[Adapter]:
        if name in _METHODS:
            raise ValueError(f"a method named {name!r} is registered already: {_METHODS[name].__qualname__}")
        cls.name = name
        _METHODS[name] = cls
        return cls

    return add


def list_methods() -> list[str]:
    """The names of all methods: those of the paper in a fixed order, then any others.

    >>> list_methods()[:2]
    ['source', 'bn']
    """
    published = [name for name in _PUBLISHED if name in _METHODS]
    return [*published, *(name for name in _METHODS if name not in _PUBLISHED)]


def method_class(name: str) -> type[Adapter]:
    """The class behind a method's name."""
    if name not in _METHODS:
        raise ValueError(f"unknown method {name!r}; there are {', '.join(list_methods())}")
    return _METHODS[name]


def create(
    name: str,
    model: nn.Module,
    num_classes: int | None = None,
    preset: str = "paper",
    seed: int = 0,
    **options: Any,
) -> Adapter:
    """Wrap ``model`` in the method ``name``.

    Args:
        name: one of :func:`list_methods`.
        model: any module from images to logits; it is not changed.
        num_classes: inferred from the last linear layer when left out.
        preset: ``"paper"``, the settings of the PTTA comparison, or another of the method's ``presets``.
        seed: of everything random in the method.
        **options: override single settings of the preset.

    >>> import torch
    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = create("grotta", net)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape
    torch.Size([4, 5])
    """
    cls = method_class(name)
    if preset not in cls.presets:
        raise ValueError(f"method {name!r} has no preset {preset!r}; it has {', '.join(cls.presets)}")
    return cls(model, num_classes=num_classes, seed=seed, **{**cls.presets[preset], **options})
