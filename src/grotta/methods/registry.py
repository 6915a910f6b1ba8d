"""Methods by name."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from grotta._plugins import load_plugins
from grotta.methods.base import Adapter

Class = TypeVar("Class", bound=type[Adapter])
PLUGINS = "grotta.methods"
# The rows of the paper's tables, in its order: what is compared by default, whatever is registered besides.
PAPER_METHODS = ("source", "bn", "pl", "tent", "lame", "cotta", "ods", "note", "rotta", "grotta")
_LISTED_FIRST = ("source", "bn", "pl", "tent", "lame", "cotta", "note", "ods", "rotta", "grotta")
_METHODS: dict[str, type[Adapter]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Class decorator that makes a method known to :func:`create` and the benchmark under ``name``.

    What describes the method is on the class: ``title``, ``place``, ``cost``, ``reconstruction`` and ``presets``. A
    title or a place that is only inherited is another method's: the name stands for the title then, and the place is
    after all others.
    """

    def add(cls: Class) -> Class:
        if name in _METHODS:
            raise ValueError(f"a method named {name!r} is registered already: {_METHODS[name].__qualname__}")
        cls.name = name
        cls.title = vars(cls).get("title", name)
        cls.place = vars(cls).get("place", Adapter.place)
        _METHODS[name] = cls
        return cls

    return add


def list_methods() -> list[str]:
    """The names of all methods: those of the paper in a fixed order, then the others by their place in tables.

    Methods that installed packages announce as entry points ``grotta.methods`` are among them.

    >>> list_methods()[:2]
    ['source', 'bn']
    """
    load_plugins(PLUGINS)
    others = [name for name in _METHODS if name not in _LISTED_FIRST]
    return [
        *(name for name in _LISTED_FIRST if name in _METHODS),
        *sorted(others, key=lambda name: _METHODS[name].place),
    ]


def method_class(name: str) -> type[Adapter]:
    """The class behind a method's name.

    >>> method_class("cotta").title, method_class("source").cost
    ('CoTTA', 1.0)
    """
    if name not in _METHODS:
        load_plugins(PLUGINS)
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
