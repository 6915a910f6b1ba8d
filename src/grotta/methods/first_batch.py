"""What only a real batch reveals about a model: a softmax or sigmoids at its end, norm layers that it bypasses."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from grotta.nn import AdaptiveNorm
from grotta.nn.logits import seeming_end


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn if ``logits`` (B, classes) look as if the model ended in a softmax or in sigmoids."""
    if (ending := seeming_end(logits)) != "logits":
        warnings.warn(
            f"the model seems to end in a {ending}: its outputs look like probabilities, but are taken for logits; "
            f'pass ends_in="{ending}" if it does, ends_in="logits" if not',
            UserWarning,
            stacklevel=6,
        )


@contextlib.contextmanager
def watching_norms(adapter: nn.Module) -> Iterator[None]:
    """Warn of norm layers whose statistics are used in here although the layers are not called."""
    layers = {name: layer for name, layer in adapter.named_modules() if isinstance(layer, AdaptiveNorm)}
    called: set[str] = set()
    hooks = [layer.register_forward_pre_hook(_noting(called, name)) for name, layer in layers.items()]
    watch = _Uses({id(layer.running_mean): name for name, layer in layers.items()})
    try:
        with watch:
            yield
    finally:
        for hook in hooks:
            hook.remove()
    if around := sorted(watch.used - called):
        layer, others = around[0].partition("body.")[2], f" and {len(around) - 1} more" if len(around) > 1 else ""
        warnings.warn(
            f"the model uses the statistics of {layer!r}{others} without calling the layer, so they are not adapted; "
            "call the layer instead of F.batch_norm",
            UserWarning,
            stacklevel=6,
        )


def _noting(called: set[str], name: str) -> Any:
    def note(module: nn.Module, args: Any) -> None:
        called.add(name)

    return note


class _Uses(TorchFunctionMode):
    """Notes which of the given tensors functions are called with."""

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__()
        self.names = names
        self.used: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in (*args, *(kwargs or {}).values()):
            if id(value) in self.names:
                self.used.add(self.names[id(value)])
        return func(*args, **(kwargs or {}))
