"""A look at a model before its first batch: one pass without weights, data or cost, on the meta device."""

import copy
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from grotta.nn.share import tensors_in, without_hooks

BATCH = 2
_USUAL_SIZES = (32, 224)
# What normalisation layers of torch itself do: they change values, of which there are none here.
_KEEP_SHAPE = {kind.forward for kind in (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)}


class Probed(NamedTuple):
    """What a pass has shown."""

    returned: Any  # what the model returned, its tensors without values
    classifiers: dict[str, int]  # linear layers and 1x1 convolutions by name, with their outputs, in the order they ran


def probe(model: nn.Module) -> Probed | None:
    """Pass a batch of two images without values through a copy of ``model``; None if no such pass succeeds.

    The size of the images is the one that the model declares (as timm's and Hugging Face's do) or a common one.
    Many models cannot be run this way, because they look at values or are made for another size: nothing is known then.

    >>> probed = probe(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 7), nn.Linear(7, 2)))
    >>> probed.returned.shape, probed.classifiers
    (torch.Size([2, 2]), {'2': 7, '3': 2})
    """
    structure = tuple((name, tuple(p.shape), p.dtype) for name, p in model.named_parameters())
    known = _PROBED.get(model)
    if known is None or known[0] != structure:
        known = _PROBED[model] = (structure, _probe(model))
    return known[1]


_PROBED: "weakref.WeakKeyDictionary[nn.Module, tuple[Any, Probed | None]]" = weakref.WeakKeyDictionary()


def outputs_of(layer: nn.Module) -> int | None:
    """Outputs of a layer that can be a classifier: a linear one or a 1x1 convolution; else None."""
    if isinstance(layer, nn.Linear):
        return layer.out_features
    return layer.out_channels if isinstance(layer, nn.Conv2d) and set(layer.kernel_size) == {1} else None


def _probe(model: nn.Module) -> Probed | None:
    with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            twin = _without_values(model)
        except Exception:
            return None
        ran: dict[str, int] = {}
        for name, layer in twin.named_modules():
            if type(layer).forward in _KEEP_SHAPE:
                vars(layer)["forward"] = _same  # on the meta device normalisation takes longer than all the rest
            if (outputs := outputs_of(layer)) is not None:
                layer.register_forward_hook(_noting(ran, name, outputs))
        floating = (p.dtype for p in twin.parameters() if p.is_floating_point())
        dtype = next(floating, torch.float32)
        for shape in _shapes(model):
            ran.clear()
            try:
                return Probed(twin(torch.empty(BATCH, *shape, dtype=dtype, device="meta")), ran)
            except Exception:
                continue
    return None


def _same(x: Tensor) -> Tensor:
    return x


def _noting(ran: dict[str, int], name: str, outputs: int) -> Any:
    def note(module: nn.Module, args: Any, returned: Any) -> None:
        ran.pop(name, None)
        ran[name] = outputs  # last, whatever ran before

    return note


def _without_values(model: nn.Module) -> nn.Module:
    """A copy of the module tree whose tensors have shapes and types only."""
    memo: dict[int, object] = without_hooks(model, warn=False)
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
    for module in model.modules():
        for tensor in tensors_in([*module._buffers.values(), vars(module)]):
            memo.setdefault(id(tensor), torch.empty_like(tensor, device="meta", requires_grad=False))
    return copy.deepcopy(model, memo).eval()


def _shapes(model: nn.Module) -> Iterator[tuple[int, int, int]]:
    """Image shapes to try: the declared one or, without, the usual ones with the channels of the first layer."""
    first = next((m.in_channels for m in model.modules() if isinstance(m, nn.Conv2d)), 3)
    declared = _declared(model, first)
    if declared is not None:
        yield declared
        return
    for size in _USUAL_SIZES:
        yield first, size, size


def _declared(model: nn.Module, channels: int) -> tuple[int, int, int] | None:
    for name in ("pretrained_cfg", "default_cfg"):  # timm
        config = getattr(model, name, None)
        size = config.get("input_size") if isinstance(config, dict) else getattr(config, "input_size", None)
        if isinstance(size, tuple | list) and len(size) == 3:
            embedding = getattr(getattr(model, "patch_embed", None), "img_size", None)  # made for another size
            height, width = embedding if isinstance(embedding, tuple) and len(embedding) == 2 else size[1:]
            return channels, int(height), int(width)
    config = getattr(model, "config", None)  # Hugging Face
    size = getattr(config, "image_size", None)
    channels = getattr(config, "num_channels", channels)
    if isinstance(size, int):
        return channels, size, size
    return (channels, *size) if isinstance(size, tuple | list) and len(size) == 2 else None
