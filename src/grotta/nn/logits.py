"""The logits in whatever a model returns."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Field = str | int | None


def find_logits(returned: Any, field: Field = None) -> Tensor:
    """The tensor of logits in what a model ``returned``.

    A tensor is taken as it is. Of a mapping or an object, as Hugging Face models return it, it is the entry or
    attribute ``"logits"``; of a tuple or list, the first. ``field`` names another entry, attribute or place. Maps of
    one pixel, which a 1x1 convolution behind the pooling returns, are flattened.

    >>> find_logits({"logits": torch.zeros(2, 5), "hidden": torch.ones(2, 8)}).shape
    torch.Size([2, 5])
    >>> find_logits((torch.zeros(2, 8), torch.zeros(2, 5)), field=1).shape
    torch.Size([2, 5])
    """
    found = _named(returned, "logits" if field is None else field)
    if found is None and field is None:
        found = returned[0] if isinstance(returned, tuple | list) and returned else returned
    if isinstance(found, Tensor) and found.is_floating_point():
        return found.flatten(1) if found.ndim == 4 and found.shape[2:] == (1, 1) else found
    place = "" if field is None else f" under {field!r}"
    raise TypeError(
        f"the model must return a tensor of logits (batch, classes){place}, got {_contents(returned)}; name the field "
        "that holds them with logits=, or wrap the model in a module that returns the logits alone"
    )


def to_logits(probs: Tensor) -> Tensor:
    """Logits whose softmax is ``probs`` (B, classes).

    >>> to_logits(torch.tensor([[0.25, 0.75]])).softmax(1)
    tensor([[0.2500, 0.7500]])
    """
    return probs.clamp_min(torch.finfo(probs.dtype).tiny).log()


def are_probabilities(logits: Tensor) -> bool:
    """Whether every row is a probability distribution already; waits for the device.

    >>> are_probabilities(torch.tensor([[0.25, 0.75]])), are_probabilities(torch.tensor([[-1.0, 2.0]]))
    (True, False)
    """
    return bool((logits >= 0).all() & ((logits.sum(1) - 1).abs() < 1e-3).all())


def _named(returned: Any, field: str | int) -> Any:
    if isinstance(returned, Mapping):
        return returned.get(field)
    if isinstance(field, int):
        return (
            returned[field] if isinstance(returned, tuple | list) and -len(returned) <= field < len(returned) else None
        )
    return getattr(returned, field, None)


def _contents(returned: Any) -> str:
    """What came, in a few words."""
    if isinstance(returned, Tensor):
        return f"a tensor of {returned.dtype}"
    if isinstance(returned, Mapping):
        return f"a {type(returned).__name__} of {', '.join(map(repr, returned)) or 'nothing'}"
    if isinstance(returned, tuple | list):
        return f"a {type(returned).__name__} of {len(returned)}"
    return type(returned).__name__
