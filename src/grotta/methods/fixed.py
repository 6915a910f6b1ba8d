"""Networks that never change: one for all adapters of a model."""

import threading
import weakref
from collections.abc import Callable, Hashable

from torch import Tensor, nn

from grotta.nn import Network, storages

_made: weakref.WeakKeyDictionary[nn.Module, weakref.WeakValueDictionary[Hashable, Network]] = (
    weakref.WeakKeyDictionary()
)
_making = threading.Lock()


def fixed_network(model: nn.Module, key: Hashable, make: Callable[[], Network]) -> Network:
    """What ``make()`` made of ``model`` for ``key`` while ``model`` was as it is now, or else makes.

    It lives as long as an adapter uses it. One that holds anything of its own, which would be state, is not shared.
    """
    key = (key, _looks(model))
    with _making:
        networks = _made.setdefault(model, weakref.WeakValueDictionary())
        network = networks.get(key)
        if network is None:
            network = make()
            if storages(network) <= storages(model):
                networks[key] = network
        return network


def _looks(model: nn.Module) -> Hashable:
    """All that a copy of ``model`` depends on: its modules, where their tensors are, and their settings."""
    return tuple(
        (name, type(module), *((key, _look(value)) for key, value in vars(module).items() if _matters(key, value)))
        for name, module in model.named_modules(remove_duplicate=False)
    )


def _matters(key: str, value: object) -> bool:
    """Modules are looked at one by one, copies are in evaluation mode, and most tables of hooks are empty."""
    return key not in ("training", "_modules") and not (isinstance(value, dict) and not value)


def _look(value: object) -> Hashable:
    if isinstance(value, Tensor):
        return value.data_ptr(), value.shape, value.stride(), value.dtype, value.device
    if isinstance(value, dict):
        return tuple((key, _look(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_look, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return id(value)
