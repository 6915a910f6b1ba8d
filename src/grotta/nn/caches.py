"""Tensors that a pass of a network leaves behind in its modules, and how to get rid of them."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from grotta.nn.share import tensors_in

_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_MISSING = object()


class PassCaches:
    """What modules keep from one pass to the next outside of their parameters and buffers.

    Some models cache tensors in evaluation mode, such as attention biases looked up from a table. Kept beyond a pass,
    they belong to weights that have been trained since, or carry a graph that was used up. Made before a first pass,
    this finds them after it (:meth:`look`), and puts back what was there (:meth:`forget`).
    """

    def __init__(self, body: nn.Module) -> None:
        self._before = [(vars(module), dict(_plain(module))) for module in body.modules()]
        self.found: list[tuple[dict[str, Any], str, Any]] = []

    def look(self) -> None:
        """Find the attributes in which a pass has left tensors."""
        for attributes, before in self._before:
            for name, value in list(attributes.items()):
                if name not in _OF_EVERY_MODULE and _ids(value) - _ids(before.get(name)):
                    self.found.append((attributes, name, before.get(name, _MISSING)))
        self._before = []

    def forget(self) -> None:
        """Put back what was there before the first pass."""
        for attributes, name, value in self.found:
            if value is _MISSING:
                attributes.pop(name, None)
            else:
                attributes[name] = _copied(value)


def _plain(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if name not in _OF_EVERY_MODULE:
            yield name, _copied(value)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


def _ids(value: Any) -> set[int]:
    return set() if isinstance(value, nn.Module) else {id(tensor) for tensor in tensors_in(value)}
