"""The arguments that every adapter takes, checked when it is made."""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grotta import outputs
from grotta._check import check_between, check_one_of, check_positive, check_type, check_whole
from grotta.nn.share import unwrap
from grotta.outputs.registry import option_names

# Options of output adaptations that every adapter takes directly, whichever it has.
FLAT_OUTPUT_OPTIONS = ("k", "affinity", "sigma", "lam")


def check_model(model: object) -> nn.Module:
    """The network itself, if it is one that can be adapted."""
    model = unwrap(check_type("model", model, nn.Module, "a torch.nn.Module"))
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
    known = dict.fromkeys(FLAT_OUTPUT_OPTIONS)
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
    num_classes = check_whole("num_classes", num_classes, at_least=2)
    if found is not None and found != num_classes:
        raise ValueError(f"num_classes is {num_classes}, but the model's last linear layer has {found} outputs")
    return num_classes


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


def settle_output(
    kind: str | None, num_classes: int, options: Mapping[str, Any] | None, flat: Mapping[str, Any]
) -> outputs.OutputAdaptation:
    """The output adaptation ``kind`` with its ``options``.

    ``flat`` are options that the adapter was given directly: they are passed on to an adaptation that has them, and
    checked but otherwise ignored if it does not. ``options`` take precedence.
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"output_options must be a mapping of names to values, got {options!r}")
    cls = outputs.output_class(kind)
    for name, value in flat.items():
        if name == "k":
            check_whole(name, value, at_least=1)
        elif name == "affinity":
            check_one_of(name, value, ("knn", "rbf", "linear"))
        elif name == "sigma":
            check_positive(name, value)
        elif value is not None:
            check_between(name, value, 0, 1, below=True)
    known = option_names(cls)
    return outputs.create(
        kind, num_classes, **{name: flat[name] for name in flat if name in known} | dict(options or {})
    )
