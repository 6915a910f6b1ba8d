"""Copies of a network that share its weights by reference."""

import copy
import warnings
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

_HOOK_TABLES = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)
_HOOK_FLAGS = (
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
)


def unwrap(model: nn.Module) -> nn.Module:
    """The network inside ``torch.compile`` and data-parallel wrappers."""
    while True:
        if isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        elif isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


def shared_copy(model: nn.Module, *, warn: bool = True) -> nn.Module:
    """A copy of the module tree in evaluation mode whose parameters and buffers are views of ``model``'s.

    No weight is copied and none requires a gradient; ``model``, its mode and its gradients stay as they are.
    Hooks of torch's own (weight and spectral normalisation, pruning) come along, since they compute weights; the
    caller's own hooks observe *the caller's* module and are left behind, with a warning that says where.

    >>> net = nn.Linear(2, 2)
    >>> shared_copy(net).weight.data_ptr() == net.weight.data_ptr()
    True
    """
    model = unwrap(model)
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("model is a torch.jit.ScriptModule, whose layers cannot be replaced: pass the original module")
    if lazy := [name for name, p in model.named_parameters() if isinstance(p, nn.UninitializedParameter)]:
        raise ValueError(f"the model is lazy: run it once so that {lazy[0]!r} gets its size")
    memo: dict[int, object] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(_view(parameter), requires_grad=False)
    for buffer in model.buffers():
        memo[id(buffer)] = _view(buffer)
    for module in model.modules():
        # Weights that a hook computes and activations that a forward pass left behind carry a graph.
        memo |= {id(tensor): _view(tensor) for tensor in tensors_in(vars(module)) if not tensor.is_leaf}
    memo |= without_hooks(model, warn)
    for module in model.modules():
        if (layer := _plain_copy(module, memo)) is not None:
            memo[id(module)] = layer
    return copy.deepcopy(model, memo).eval()


def own_parameters(network: nn.Module) -> list[nn.Parameter]:
    """Give ``network`` its own copy of every parameter, to be trained; returns them."""
    own: dict[int, nn.Parameter] = {}
    for module in network.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in own:
                    # A new tensor, not new data for the old one: that would keep the version counter of the original.
                    own[id(parameter)] = nn.Parameter(parameter.detach().clone(), parameter.is_floating_point())
                module._parameters[name] = own[id(parameter)]
    return [p for p in network.parameters() if p.requires_grad]


def storages(module: nn.Module) -> set[int]:
    """Addresses of the distinct storages behind the parameters and buffers of ``module``."""
    tensors = [*module.parameters(), *module.buffers()]
    return {t.untyped_storage().data_ptr() for t in tensors}


def _view(tensor: Tensor) -> Tensor:
    # A tensor made under inference_mode cannot take part in autograd: it must be copied.
    return tensor.detach().clone() if tensor.is_inference() else tensor.detach()


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors in ``value`` and in the plain containers in it."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)


_PLAIN = (bool, int, float, str, tuple, type(None), torch.dtype, torch.device)


def _plain_copy(module: nn.Module, memo: dict[int, object]) -> nn.Module | None:
    """A copy of one of torch's own layers, None if it is not one or holds more than its kind does.

    They are most of a network, and copying them attribute by attribute takes a tenth of the time of ``deepcopy``.
    """
    if not type(module).__module__.startswith("torch.nn.modules.") or module._modules:
        return None
    values: dict[str, object] = {}
    for name, value in vars(module).items():
        if id(value) in memo:
            values[name] = memo[id(value)]
        elif name in ("_parameters", "_buffers"):
            values[name] = {key: None if tensor is None else memo[id(tensor)] for key, tensor in value.items()}
        elif type(value) in _PLAIN:
            values[name] = value
        elif isinstance(value, dict | set | list) and _holds_plain(value):
            values[name] = type(value)(value)
        else:
            return None
    made = module.__new__(type(module))
    vars(made).update(values)
    return made


def _holds_plain(container: Iterable[object]) -> bool:
    values = container.values() if isinstance(container, dict) else container
    return all(type(value) in _PLAIN for value in values)


def without_hooks(model: nn.Module, warn: bool) -> dict[int, object]:
    """A deepcopy memo that replaces hook tables by copies without the caller's hooks."""
    memo: dict[int, object] = {}
    dropped: list[str] = []
    for name, module in model.named_modules():
        for table_name in _HOOK_TABLES:
            table = getattr(module, table_name)
            kept = type(table)((k, h) for k, h in table.items() if _computes_weights(h))
            if len(kept) < len(table):
                dropped.append(name or "the model itself")
            memo[id(table)] = kept
        for flag_name in _HOOK_FLAGS:
            flags = getattr(module, flag_name)
            memo[id(flags)] = type(flags)(flags)
    if dropped and warn:
        warnings.warn(
            f"hooks on {', '.join(dict.fromkeys(dropped))} are not run inside the adapter: they stay with your module",
            UserWarning,
            stacklevel=4,
        )
    return memo


def _computes_weights(hook: object) -> bool:
    return type(hook).__module__.startswith("torch.nn.utils.")
