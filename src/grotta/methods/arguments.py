"""The arguments that every adapter takes, checked when it is made."""

import inspect
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grotta import outputs
from grotta._check import check_between, check_one_of, check_positive, check_type, check_whole
from grotta.nn.logits import Field, find_logits
from grotta.nn.network import find_classifier
from grotta.nn.probe import BATCH, outputs_of, probe
from grotta.nn.share import shared_copy, unwrap
from grotta.outputs.registry import option_names

# Options of output adaptations that every adapter takes directly, whichever it has.
FLAT_OUTPUT_OPTIONS = ("k", "affinity", "sigma", "lam")


_FIXED = (
    "whose layers cannot be replaced or trained: pass the original float module, or adapt its predictions alone, as "
    "with grotta.outputs.create('stream', num_classes)(probabilities)"
)
_QUANTISED = ("torch.ao.nn.quantized", "torch.nn.quantized", "torch.ao.nn.intrinsic.quantized")


def check_model(model: object) -> nn.Module:
    """The network itself, if it is one that can be adapted; a copy in float32 of one in half precision."""
    if any(base.__module__.startswith("torch.export") for base in type(model).__mro__):  # the program or its module
        raise TypeError(f"model is a torch.export program, {_FIXED}")
    model = unwrap(check_type("model", model, nn.Module, "a torch.nn.Module"))
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError(f"model is a torch.jit.ScriptModule, {_FIXED}")
    if quantised := [name for name, module in model.named_modules() if _is_quantised(module)]:
        raise TypeError(f"model is quantised (layer {quantised[0]!r}), {_FIXED}")
    half = next((p.dtype for p in model.parameters() if p.is_floating_point() and p.dtype.itemsize < 4), None)
    if half is None:
        return model
    warnings.warn(
        f"model has {half} weights, in which small steps are lost: the adapter runs on a float32 copy of its own; pass "
        "model.float() to share one among adapters",
        UserWarning,
        stacklevel=4,
    )
    return shared_copy(model).float()


def _is_quantised(module: nn.Module) -> bool:
    of_torch = type(module).__module__.startswith(_QUANTISED)
    return of_torch or any(p.is_quantized for p in module.parameters(recurse=False))


def check_floats(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and type of the model's weights."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0, device="cpu"))
    if like.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"model must have float32 or float64 weights, got {like.dtype}: wrap it again")
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


def settle_classifier(
    model: nn.Module, feature_layer: str | None, num_classes: int | None, logits: Field
) -> tuple[str, int]:
    """Name of the layer whose input are the features, and the number of classes, from the caller or the model.

    Whatever a probe of the model shows to be wrong is refused.
    """
    if getattr(model, "num_classes", None) == 0:  # timm's way to leave out the classifier
        raise ValueError("the model has no classifier: its num_classes is 0")
    probed = probe(model)
    found = None if probed is None else _probed_classes(find_logits(probed.returned, logits))
    if probed is not None and found is not None and logits is None:
        _check_place(probed.returned, found, set(probed.classifiers.values()))
    name, classifier = find_classifier(model, feature_layer, probed, found)
    if probed is not None and outputs_of(classifier) is not None and name not in probed.classifiers:
        raise ValueError(f"feature_layer must run in the model's forward, got {name!r}, which does not")
    outputs = outputs_of(classifier) if found is None else found
    if num_classes is None:
        if outputs is None:
            raise ValueError(
                "num_classes cannot be inferred: the feature layer is neither linear nor a 1x1 convolution; give "
                "num_classes="
            )
        num_classes = outputs
    if outputs == 1:
        raise ValueError(
            "the model has one output: wrap it so that it returns a logit for each class, such as "
            "torch.cat((torch.zeros_like(z), z), 1) for the logit z of yes against no"
        )
    num_classes = check_whole("num_classes", num_classes, at_least=2)
    if outputs is not None and outputs != num_classes:
        raise ValueError(f"num_classes is {num_classes}, but the model has {outputs} outputs")
    return name, num_classes


def _probed_classes(logits: Tensor) -> int:
    if logits.ndim != 2 or len(logits) != BATCH:
        shape = tuple(logits.shape)
        raise ValueError(f"model must return logits of shape (batch, classes), got {shape} for a batch of {BATCH}")
    return logits.shape[1]


def _check_place(returned: object, found: int, widths: set[int]) -> None:
    """Refuse a tuple whose first tensor has the width of no classifier that ran, while a later one has."""
    if not isinstance(returned, tuple | list) or found in widths:
        return
    later = [i for i, part in enumerate(returned) if isinstance(part, Tensor) and part.ndim == 2]
    if later := [i for i in later if returned[i].shape[1] in widths]:
        raise ValueError(
            f"the model returns a {type(returned).__name__}, whose first tensor has {found} columns, and no layer has "
            f"so many outputs: say which are the logits, as with logits={later[0]}"
        )


def check_field(field: object) -> Field:
    """The name or place of a field in what a model returns."""
    if field is not None and (not isinstance(field, str | int) or isinstance(field, bool)):
        raise TypeError(f"logits must be the name or the place of a field, got {field!r}")
    return field


def check_channels(name: str, values: Sequence[float] | Tensor | None) -> list[float] | None:
    """One finite number per channel, or None."""
    if values is None:
        return None
    try:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError
        numbers = [float(v) for v in values]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name} must hold one finite number per channel, got {values!r}")
    if name == "std" and not all(n > 0 for n in numbers):
        raise ValueError(f"std must be positive, got {values!r}")
    return numbers


def warn_of_normalisation(model: nn.Module, given: bool) -> None:
    """Warn if ``model`` declares, as timm's do, which normalisation of the input it was made for, and none is given."""
    config = getattr(model, "pretrained_cfg", None)
    mean, std = (config.get(name) if isinstance(config, dict) else None for name in ("mean", "std"))
    if given or not mean or not std or not (any(mean) or any(value != 1 for value in std)):
        return
    warnings.warn(
        f"the model declares that it wants input normalised with mean={list(mean)} and std={list(std)}: pass these, or "
        f"mean={[0] * len(mean)} if it wants images in [0, 1]",
        UserWarning,
        stacklevel=4,
    )


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
