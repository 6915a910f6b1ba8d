"""Sub-packages that are imported when they are first used."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy(
    package: str, names: tuple[str, ...], present: Mapping[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], Iterable[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose sub-packages ``names`` are imported on first use."""

    def get(name: str) -> Any:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*present, *names})
