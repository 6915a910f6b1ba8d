"""The arguments that every adapter takes, checked when it is made."""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

import torch
from torch import Tensor, nn

from grotta.nn.share import unwrap


def check_model(model: object) -> nn.Module:
    """The network itself, if it is one that can be adapted."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    model = unwrap(model)
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("model is a torch.jit.ScriptModule, whose layers cannot be replaced: pass the original module")
    return model


def check_floats(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and type of the model's weights; small steps on half-precision weights would be lost to rounding."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0, device="cpu"))
    if like.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"model must have float32 or float64 weights, got {like.dtype}; keep it in float32 and call the adapter "
            "under torch.autocast"
        )
    return like.device, like.dtype


def check_option_names(method: type, given: Mapping[str, object]) -> None:
    """Refuse an option that neither the method nor what it builds on takes."""
    known: dict[str, None] = {}
    for cls in method.__mro__:
        if cls is nn.Module:
            break
        if "__init__" in vars(cls):
            parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
            known |= {p.name: None for p in parameters if p.kind is not p.VAR_KEYWORD}
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    if unknown := [name for name in given if name not in known]:
        name = getattr(method, "name", "") or method.__name__
        raise TypeError(f"method {name!r} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}")


def settle_num_classes(num_classes: int | None, classifier: nn.Module) -> int:
    """The number of classes, from the caller or the classifier; both must agree."""
    found = classifier.out_features if isinstance(classifier, nn.Linear) else None
    if num_classes is None:
        if found is None:
            raise ValueError("num_classes cannot be inferred: the feature layer is not an nn.Linear; give num_classes=")
        num_classes = found
    if isinstance(num_classes, bool) or not isinstance(num_classes, Integral) or num_classes < 2:
        raise ValueError(f"num_classes must be a whole number >= 2, got {num_classes!r}")
    if found is not None and found != num_classes:
        raise ValueError(f"num_classes is {num_classes}, but the model's last linear layer has {found} outputs")
    return int(num_classes)


def check_seed(seed: int) -> int:
    """A whole number that a generator takes."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be a whole number in [0, 2**63), got {seed!r}")
    return int(seed)


def check_channels(name: str, values: Sequence[float] | Tensor | None) -> list[float] | None:
    """One finite number a channel, or None."""
    if values is None:
        return None
    try:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError
        numbers = [float(v) for v in values]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name} must hold one finite number a channel, got {values!r}")
    if name == "std" and not all(n > 0 for n in numbers):
        raise ValueError(f"std must be positive, got {values!r}")
    return numbers
