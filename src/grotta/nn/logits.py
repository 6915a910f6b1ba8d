"""The logits in whatever a model returns."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

Field = str | int | None
Ending = Literal["logits", "softmax", "sigmoid"]


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


def to_logits(returned: Tensor, ending: Ending) -> Tensor:
    """The logits (B, classes) that went into the ``ending`` of a model which ``returned`` these.

    The softmax of a model's sigmoids' logits shares out the odds of its classes.

    >>> to_logits(torch.tensor([[0.25, 0.75]]), "softmax").softmax(1)
    tensor([[0.2500, 0.7500]])
    >>> to_logits(torch.tensor([[2.0, -1.0]]).sigmoid(), "sigmoid")
    tensor([[ 2.0000, -1.0000]])
    """
    if ending == "logits":
        return returned
    limits = torch.finfo(returned.dtype)
    if ending == "softmax":
        return returned.clamp_min(limits.tiny).log()
    bounded = returned.clamp(limits.tiny, 1 - limits.eps)
    return bounded.log() - (-bounded).log1p()


def seeming_end(returned: Tensor) -> Ending:
    """What a model that ``returned`` these (B, classes) seems to end in; waits for the device.

    Rows that sum to 1 are those of a softmax. Numbers in [0, 1] are taken for sigmoids if they say no to most classes
    and yes to some: logits of an untrained network lie there by chance.

    >>> seeming_end(torch.tensor([[0.25, 0.75]])), seeming_end(torch.tensor([[-1.0, 2.0]]))
    ('softmax', 'logits')
    >>> seeming_end(torch.tensor([[0.02, 0.01, 0.9, 0.03], [0.0, 0.6, 0.3, 0.01]]))
    'sigmoid'
    """
    if not bool(((returned >= 0) & (returned <= 1)).all()):
        return "logits"
    rows = returned.to(torch.float64).sum(1)
    if bool(((rows - 1).abs() < max(1e-3, 2 * torch.finfo(returned.dtype).eps)).all()):
        return "softmax"
    return "sigmoid" if bool((returned.median() < 0.1) & (returned.max() > 0.5)) else "logits"


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
