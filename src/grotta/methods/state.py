"""The complete state of an adapter, as one flat dict of tensors."""

from collections.abc import Iterator, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from grotta.nn import storages


class Memory(Protocol):
    """What an adapter asks of a sample memory in order to save it."""

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all that the memory's next calls depend on."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from ``state``."""


class Stateful(Protocol):
    """What an adapter is made of, as far as its state goes."""

    model: nn.Module
    memory: Memory | None
    optimizer: torch.optim.Optimizer | None
    generator: torch.Generator
    device: torch.device
    step: int


def gather_state(adapter: Stateful) -> dict[str, Tensor]:
    """Copies of norm states and trained weights, optimizer, memory, generator and counter."""
    state = {f"network.{name}": tensor.detach().clone() for name, tensor in _own_tensors(adapter)}
    state |= {f"optimizer.{key}": tensor.clone() for key, tensor in _optimizer_tensors(adapter.optimizer)}
    if adapter.memory is not None:
        state |= {f"memory.{key}": tensor for key, tensor in adapter.memory.state_dict().items()}
    return {**state, "generator": adapter.generator.get_state(), "step": torch.tensor(adapter.step)}


@torch.inference_mode(False)
@torch.no_grad()
def restore_state(adapter: Stateful, state: Mapping[str, Tensor]) -> None:
    """Let ``adapter`` go on from ``state``; one that does not fit raises an error and changes nothing."""
    own = dict(_own_tensors(adapter))
    parts = _split(state)
    _check_fit(own, parts["network"])
    if adapter.memory is not None:
        adapter.memory.load_state_dict({key: tensor.to(adapter.device) for key, tensor in parts["memory"].items()})
    for name, tensor in own.items():
        tensor.copy_(parts["network"][name])
    if adapter.optimizer is not None:
        _load_optimizer(adapter.optimizer, parts["optimizer"])
    adapter.generator.set_state(state["generator"].cpu())
    adapter.step = int(state["step"])


def _own_tensors(adapter: Stateful) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers that are not the model's: what distinguishes an adapter from a new one."""
    assert isinstance(adapter, nn.Module)
    shared = storages(adapter.model)
    for name, tensor in [*adapter.named_parameters(), *adapter.named_buffers()]:
        if tensor.untyped_storage().data_ptr() not in shared:
            yield name, tensor


def _optimizer_tensors(optimizer: torch.optim.Optimizer | None) -> Iterator[tuple[str, Tensor]]:
    state = {} if optimizer is None else optimizer.state_dict()["state"]
    for index, values in state.items():
        for key, value in values.items():
            if isinstance(value, Tensor):
                yield f"{index}.{key}", value


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = tensor.clone()
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _split(state: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "memory": {}, "optimizer": {}}
    for key, tensor in state.items():
        part, _, name = key.partition(".")
        if part in parts:
            parts[part][name] = tensor
        elif key not in ("generator", "step"):
            raise ValueError(f"unexpected entry {key!r} in the state of an adapter")
    for key in ("generator", "step"):
        if key not in state:
            raise ValueError(f"the state of an adapter needs an entry {key!r}")
    return parts


def _check_fit(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    if missing := sorted(own.keys() - given.keys()):
        raise ValueError(f"the state lacks {missing[0]!r} and {len(missing) - 1} more entries")
    if extra := sorted(given.keys() - own.keys()):
        raise ValueError(f"the state has {extra[0]!r} and {len(extra) - 1} more entries that this adapter has not")
    for key, tensor in own.items():
        if tensor.shape != given[key].shape:
            raise ValueError(f"{key!r} must have shape {tuple(tensor.shape)}, got {tuple(given[key].shape)}")
