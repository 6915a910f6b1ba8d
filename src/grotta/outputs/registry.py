"""Output adaptations by name."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from grotta._plugins import load_plugins
from grotta.outputs.base import OutputAdaptation
from grotta.outputs.unchanged import Unchanged

Class = TypeVar("Class", bound=type[OutputAdaptation])
PLUGINS = "grotta.outputs"
_OUTPUTS: dict[str, type[OutputAdaptation]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Class decorator that makes an output adaptation known under ``name``."""

    def add(cls: Class) -> Class:
        if name in _OUTPUTS:
            raise ValueError(
                f"an output adaptation named {name!r} is registered already: {_OUTPUTS[name].__qualname__}"
            )
        cls.name = name
        _OUTPUTS[name] = cls
        return cls

    return add


def list_outputs() -> list[str]:
    """The names of all output adaptations, those of installed plug-ins included.

    >>> list_outputs()[:2]
    ['bias_guided', 'laplacian']
    """
    load_plugins(PLUGINS)
    return list(_OUTPUTS)


def output_class(name: str | None) -> type[OutputAdaptation]:
    """The class behind a name; ``None`` means that predictions go out unchanged."""
    if name is None:
        return Unchanged
    load_plugins(PLUGINS)
    if name not in _OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(map(repr, [None, *_OUTPUTS]))}, got {name!r}")
    return _OUTPUTS[name]


def option_names(cls: type[OutputAdaptation]) -> list[str]:
    """The options of an output adaptation, as its ``__init__`` declares them."""
    return [name for name in inspect.signature(cls).parameters if name != "num_classes"]


def create(name: str | None, num_classes: int, **options: Any) -> OutputAdaptation:
    """The output adaptation ``name`` for predictions of ``num_classes`` classes.

    >>> create("laplacian", 10, affinity="rbf").affinity
    'rbf'
    >>> create("laplacian", 10, sigma=2.0)
    Traceback (most recent call last):
    TypeError: output adaptation 'laplacian' has no option 'sigma'; it has affinity, k
    """
    cls = output_class(name)
    known = option_names(cls)
    if unknown := [option for option in options if option not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise TypeError(f"output adaptation {name!r} has no option {unknown[0]!r}; {has}")
    return cls(num_classes, **options)
