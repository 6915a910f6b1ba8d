"""The complete state of an adapter, as one flat dict of tensors."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from grotta.nn import storages
from grotta.outputs import OutputAdaptation


class Memory(Protocol):
    """What an adapter asks of a sample memory, whatever else it can do."""

    @property
    def nbytes(self) -> int:
        """Bytes reserved for images."""

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """(ch, H, W) of the images, None before the first."""

    def clear(self) -> None:
        """Forget everything."""

    def mark(self) -> None:
        """Remember the present contents, for :meth:`roll_back`."""

    def roll_back(self) -> None:
        """Go back to the contents that were marked."""

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all that the memory's next calls depend on."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``."""


class Stateful(Protocol):
    """What an adapter is made of, as far as its state goes."""

    model: nn.Module
    memory: Memory | None
    output: OutputAdaptation
    optimizer: torch.optim.Optimizer | None
    generator: torch.Generator
    device: torch.device
    step: int
    name: ClassVar[str]
    _own: frozenset[str]


def gather_state(adapter: Stateful) -> dict[str, Tensor]:
    """Copies of norm states and trained weights, optimizer, memory, output adaptation, generator and counter."""
    state = {f"network.{name}": tensor.detach().clone() for name, tensor in own_tensors(adapter)}
    state |= {f"optimizer.{key}": tensor.clone() for key, tensor in optimizer_tensors(adapter.optimizer)}
    if adapter.memory is not None:
        state |= {f"memory.{key}": tensor for key, tensor in adapter.memory.state_dict().items()}
    state |= {f"output.{key}": tensor for key, tensor in adapter.output.state_dict().items()}
    return {
        **state,
        "generator": adapter.generator.get_state(),
        "step": torch.tensor(adapter.step, device="cpu"),
        "method": _as_tensor(adapter.name),
    }


@torch.inference_mode(False)
@torch.no_grad()
def restore_state(adapter: Stateful, state: Mapping[str, Tensor]) -> None:
    """Let ``adapter`` continue from ``state``; one that does not fit raises an error and changes nothing."""
    own = dict(own_tensors(adapter))
    parts = _split(state)
    if not torch.equal(state["method"].cpu(), _as_tensor(adapter.name)):
        given = bytes(state["method"].tolist()).decode(errors="replace")
        raise ValueError(f"the state is one of the method {given!r}, not of {adapter.name!r}")
    _check_fit(own, parts["network"])
    _check_numbers(state)
    _check_optimizer(adapter.optimizer, parts["optimizer"])
    if adapter.memory is None and parts["memory"]:
        raise ValueError("the state has a memory, which this adapter does not have")
    kept = adapter.output.state_dict()
    _restore_output(adapter, parts["output"])
    if adapter.memory is not None:
        try:
            adapter.memory.load_state_dict({key: tensor.to(adapter.device) for key, tensor in parts["memory"].items()})
        except BaseException:
            adapter.output.load_state_dict(kept)
            raise
    for name, tensor in own.items():
        tensor.copy_(parts["network"][name])
    if adapter.optimizer is not None:
        _load_optimizer(adapter.optimizer, parts["optimizer"])
    adapter.generator.set_state(state["generator"].cpu())
    adapter.step = int(state["step"])


def _restore_output(adapter: Stateful, state: Mapping[str, Tensor]) -> None:
    """Restore the output adaptation, or reset it if the state is from before adaptations had one."""
    if state:
        adapter.output.load_state_dict({key: tensor.to(adapter.device) for key, tensor in state.items()})
    else:
        adapter.output.reset()


def own_names(adapter: nn.Module) -> frozenset[str]:
    """Names of the parameters and buffers that are not the model's: what will distinguish an adapter from a new one."""
    assert isinstance(adapter.model, nn.Module)
    shared = storages(adapter.model)
    tensors = [*adapter.named_parameters(), *adapter.named_buffers()]
    return frozenset(name for name, tensor in tensors if tensor.untyped_storage().data_ptr() not in shared)


def check_shared(adapter: Stateful) -> None:
    """Raise if the model has other weights by now than those that the adapter shares with it."""
    assert isinstance(adapter, nn.Module)
    current = storages(adapter.model)
    tensors = [*adapter.named_parameters(), *adapter.named_buffers()]
    for name, tensor in tensors:
        if name not in adapter._own and tensor.untyped_storage().data_ptr() not in current:
            raise RuntimeError(
                "the model's weights were replaced after it was wrapped (moved, cast, or loaded with assign=True); "
                "this adapter still runs on the old ones: wrap the model again"
            )


def own_tensors(adapter: Stateful) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers that are not the model's, by name."""
    assert isinstance(adapter, nn.Module)
    parts = {name.partition(".")[0] for name in adapter._own}  # the others are shared among adapters, and are many
    modules = [("", adapter)]
    for part, child in adapter.named_children():
        if part in parts:
            modules += child.named_modules(prefix=part)
    for place, module in modules:
        for key, tensor in [*module._parameters.items(), *module._buffers.items()]:
            name = f"{place}.{key}" if place else key
            if tensor is not None and name in adapter._own:
                yield name, tensor


def optimizer_tensors(optimizer: torch.optim.Optimizer | None) -> Iterator[tuple[str, Tensor]]:
    """What an optimizer remembers of earlier steps, by parameter and name."""
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
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "memory": {}, "optimizer": {}, "output": {}}
    for key, tensor in state.items():
        part, _, name = key.partition(".")
        if part in parts:
            parts[part][name] = tensor
        elif key not in ("generator", "step", "method"):
            raise ValueError(f"unexpected entry {key!r} in the state of an adapter")
    for key in ("generator", "step", "method"):
        if key not in state:
            raise ValueError(f"the state of an adapter needs an entry {key!r}")
    return parts


def _check_fit(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    if missing := sorted(own.keys() - given.keys()):
        raise ValueError(f"the state lacks {missing[0]!r} and {len(missing) - 1} more entries")
    if extra := sorted(given.keys() - own.keys()):
        raise ValueError(
            f"the state has {extra[0]!r} and {len(extra) - 1} more entries that this adapter does not have"
        )
    for key, tensor in own.items():
        if tensor.shape != given[key].shape:
            raise ValueError(f"{key!r} must have shape {tuple(tensor.shape)}, got {tuple(given[key].shape)}")


def _check_numbers(state: Mapping[str, Tensor]) -> None:
    step = state["step"]
    if not isinstance(step, Tensor) or step.numel() != 1 or step.is_floating_point() or int(step) < 0:
        raise ValueError(f"'step' must be one whole number >= 0, got {step!r}")
    try:
        torch.Generator().set_state(state["generator"].cpu())
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ValueError(f"'generator' is not the state of a generator: {error}") from error


_OPTIMIZER_ENTRIES = {torch.optim.Adam: {"step", "exp_avg", "exp_avg_sq"}, torch.optim.SGD: {"momentum_buffer"}}


def _check_optimizer(optimizer: torch.optim.Optimizer | None, given: Mapping[str, Tensor]) -> None:
    """Refuse a state of another optimizer, or one that is not there for every parameter."""
    if not given:
        return
    if optimizer is None:
        raise ValueError("the state has an optimizer, which this adapter does not have")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    names = _OPTIMIZER_ENTRIES.get(type(optimizer))
    if names is None:
        return
    expected = {f"{i}.{name}": p.shape for i, p in enumerate(parameters) for name in names}
    if differing := sorted(expected.keys() ^ given.keys()):
        kind = type(optimizer).__name__
        raise ValueError(f"the state does not fit this {kind}: 'optimizer.{differing[0]}' is missing or too many")
    for key, shape in expected.items():
        if given[key].numel() != 1 and given[key].shape != shape:
            raise ValueError(f"'optimizer.{key}' must have shape {tuple(shape)}, got {tuple(given[key].shape)}")


def _as_tensor(name: str) -> Tensor:
    return torch.tensor(list(name.encode()), dtype=torch.uint8, device="cpu")
