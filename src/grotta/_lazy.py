"""Names of a package that are imported when they are first used."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy(
    package: str, names: Mapping[str, str], present: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], Iterable[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names come from other modules, on first use.

    Args:
        package: the package's name.
        names: each name with the module that has it; a name that stands for a module itself has ``""``.
        present: the package's ``globals()``, which remember what was used.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = names[name]
        value = (
            getattr(importlib.import_module(module), name) if module else importlib.import_module(f"{package}.{name}")
        )
        present[name] = value
        return value

    return get, lambda: sorted({*present, *names})
