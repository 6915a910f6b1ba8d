"""Loading published weights into a network, with an error that says what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from grotta.models.state_file import read_state

_SHOWN = 3


def classifier_name(model: nn.Module) -> str:
    """Name of the last linear layer of ``model``.

    >>> classifier_name(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    '2'
    """
    names: list[str] = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise ValueError(f"model ({type(model).__name__}) has no linear layer")
    return names[-1]


def num_classes_of(model: nn.Module, state: Mapping[str, Tensor]) -> int | None:
    """Number of outputs that ``state`` has for the classifier of ``model``; None if it has no such layer."""
    weight = state.get(f"{classifier_name(model)}.weight")
    return None if weight is None or weight.ndim == 0 else weight.shape[0] or None


def load_weights(
    model: nn.Module, weights: str | Path | Mapping[str, Tensor], *, keep_classifier: bool = False
) -> None:
    """Copy ``weights`` (a file, or a mapping from names to tensors) into ``model``, in place.

    Names and shapes must agree one to one, and tensors be dense and of finite real numbers; only the
    ``num_batches_tracked`` counters, which old files lack, may be missing. With ``keep_classifier`` the last linear
    layer stays as it is, for another number of classes.
    If anything does not fit, nothing is changed.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 1))
    >>> load_weights(model, {"0.weight": torch.ones(1, 2), "0.bias": torch.zeros(1)})
    >>> model(torch.ones(1, 2)).item()
    2.0
    """
    state = weights if isinstance(weights, Mapping) else read_state(weights)
    origin = "the given mapping" if state is weights else str(weights)
    copy_state(model, state, f"{origin} does not fit {type(model).__name__}", keep_classifier=keep_classifier)


def copy_state(model: nn.Module, state: Mapping[str, Tensor], complaint: str, *, keep_classifier: bool = False) -> None:
    """Copy ``state`` into ``model`` as :func:`load_weights` does; an error begins with ``complaint``."""
    own: Mapping[str, Tensor] = model.state_dict()
    if keep_classifier:
        own, state = (_without(tensors, classifier_name(model)) for tensors in (own, state))
    differences = _compare(own, state)
    if differences:
        raise ValueError(f"{complaint}: {differences}{_hint(model, own, state)}")
    unusable = [f"{name} is {fault}" for name, tensor in state.items() if (fault := _fault(tensor))]
    if unusable:
        raise ValueError(f"{complaint}: {_some(unusable)}; expected dense tensors of finite real numbers")
    model.load_state_dict(state, strict=False)


def _fault(tensor: Tensor) -> str:
    """What keeps ``tensor`` from being a weight; empty if nothing does."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        return "not dense"
    if tensor.is_complex():
        return "complex"
    # In the precision of networks: a larger number would become infinite.
    return "" if tensor.float().isfinite().all() else "not finite"


def _without(state: Mapping[str, Tensor], layer: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if name.rpartition(".")[0] != layer}


def _compare(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> str:
    missing = [name for name in own if name not in state and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in state if name not in own]
    shapes = [
        f"{name} is {tuple(state[name].shape)}, expected {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    parts = [("missing", missing), ("unexpected", unexpected), ("of another shape", shapes)]
    return "; ".join(f"{len(found)} {what}: {_some(found)}" for what, found in parts if found)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _hint(model: nn.Module, own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> str:
    layer = classifier_name(model)
    there, here = num_classes_of(model, state), num_classes_of(model, own)
    if there != here and there is not None and not _compare(_without(own, layer), _without(state, layer)):
        return f" (the file has {there} classes, the model {here}; create the model with num_classes={there})"
    return " (these are the weights of another architecture)"
