"""Corruptions by name: each is one function with its constants, registered where it is defined."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from grotta._check import check_string
from grotta._plugins import load_plugins

Scale = Literal["cifar", "imagenet"]
SCALES: tuple[Scale, ...] = get_args(Scale)
SEVERITIES = 5
PLUGINS = "grotta.corruptions"

# The fifteen of the benchmark in the order of the PTTA paper, complete and frozen: published folders hold these, and
# the place of a name is part of its seed. What is registered besides them changes neither.
BENCHMARK_DOMAINS: tuple[str, ...] = (
    "motion_blur",
    "snow",
    "fog",
    "shot_noise",
    "defocus_blur",
    "contrast",
    "zoom_blur",
    "brightness",
    "frost",
    "elastic_transform",
    "glass_blur",
    "gaussian_noise",
    "pixelate",
    "jpeg_compression",
    "impulse_noise",
)

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Corruption:
    """A registered corruption.

    Attributes:
        name: what it is called by.
        apply: ``f(images, constants)``, or ``f(images, generators, constants)`` if it draws anything.
        constants: of severity 1 to 5, at each scale.
        draws: whether ``apply`` takes generators, one per picture.
    """

    name: str
    apply: Callable[..., Any]
    constants: dict[Scale, tuple[Any, ...]]
    draws: bool

    @property
    def place(self) -> int:
        """Its part of every seed: its place in the benchmark, or else a number made from its name."""
        if self.name in BENCHMARK_DOMAINS:
            return BENCHMARK_DOMAINS.index(self.name)
        return len(BENCHMARK_DOMAINS) + int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")


_CORRUPTIONS: dict[str, Corruption] = {}


def corruption(name: str, *, cifar: Sequence[Any], imagenet: Sequence[Any]) -> Callable[[Function], Function]:
    """Register a function as the corruption ``name``, with its constants of severity 1 to 5 at each scale.

    The function takes uint8 pictures (B, H, W, 3) and the constants of one severity, and returns uint8 pictures of the
    same shape. If it has a parameter ``generators``, it gets one random generator per picture there, and must draw for
    picture ``i`` from ``generators[i]`` alone.

    A package outside of grotta announces the module with its corruptions under the entry point ``grotta.corruptions``.

    >>> import numpy as np
    >>> @corruption("darkness", cifar=(2, 3, 4, 5, 6), imagenet=(2, 3, 4, 5, 6))
    ... def darkness(images, divisor):
    ...     return images // divisor
    >>> from grotta.data import corrupt
    >>> corrupt(np.full((1, 8, 8, 3), 120, np.uint8), "darkness", 3)[0, 0, 0].tolist()
    [30, 30, 30]
    >>> del _CORRUPTIONS["darkness"]
    """
    check_string("name", name)
    for scale, constants in (("cifar", cifar), ("imagenet", imagenet)):
        if len(constants) != SEVERITIES:
            raise ValueError(f"{scale} must hold constants for 5 severities, got {len(constants)}")

    def register(function: Function) -> Function:
        known = _CORRUPTIONS.get(name)
        if known is not None:
            raise ValueError(f"name must be new, got {name!r}, which {known.apply.__module__} has registered")
        draws = "generators" in inspect.signature(function).parameters
        _CORRUPTIONS[name] = Corruption(name, function, {"cifar": tuple(cifar), "imagenet": tuple(imagenet)}, draws)
        return function

    return register


def find_corruption(name: str) -> Corruption:
    """The corruption of that name; a ``ValueError`` that lists the known ones if there is none."""
    if name not in _CORRUPTIONS and name not in list_corruptions():
        raise ValueError(f"name must be one of {', '.join(list_corruptions())}; got {name!r}")
    return _CORRUPTIONS[name]


def list_corruptions() -> list[str]:
    """The names of all corruptions: the fifteen of the benchmark, then those of installed packages.

    >>> list_corruptions()[:3]
    ['motion_blur', 'snow', 'fog']
    """
    load_plugins(PLUGINS)
    return [*BENCHMARK_DOMAINS, *sorted(_CORRUPTIONS.keys() - set(BENCHMARK_DOMAINS))]
