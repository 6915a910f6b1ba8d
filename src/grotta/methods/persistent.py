"""A module whose state is one flat dict of tensors: saved, restored and copied as a whole, also as part of another."""

from collections.abc import Mapping
from typing import Any, ClassVar, Never, Self, cast

import torch
from torch import Tensor, nn

from grotta.methods.guard import Guard
from grotta.methods.state import Memory, gather_state, restore_state
from grotta.methods.step_info import StepInfo
from grotta.methods.turns import Turns
from grotta.outputs import OutputAdaptation


class Persistent(nn.Module):
    """An adapter as a module: its state, copies and moves."""

    name: ClassVar[str] = ""
    step: int
    last: StepInfo | None
    memory: Memory | None
    optimizer: torch.optim.Optimizer | None
    generator: torch.Generator
    output: OutputAdaptation
    arguments: dict[str, Any]
    model: nn.Module
    device: torch.device
    dtype: torch.dtype
    _own: frozenset[str]
    _version: int
    _guard: Guard | None

    def __init__(self) -> None:
        super().__init__()
        self._turns = Turns()
        self._prefix = ""  # inside a module whose state is being loaded
        self.register_load_state_dict_post_hook(type(self)._forgive_missing)  # type: ignore[no-untyped-call]

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:  # type: ignore[override]
        """Copies of everything that the next call depends on, as one flat dict of tensors.

        Weights that are shared with the model are not in it.
        """
        state: dict[str, Tensor] = {} if destination is None else destination
        with self._turns.shared():
            state.update({prefix + key: tensor for key, tensor in gather_state(self).items()})
            if self._guard is not None:
                state.update({f"{prefix}guard.{key}": tensor for key, tensor in self._guard.state_dict().items()})
        return state

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> None:
        """Continue from ``state_dict``; one that does not fit raises an error and changes nothing."""
        with self._turns.exclusive():
            self._restore_all(state_dict)
            self._version += 1
            self.last = None

    def _restore_all(self, state: Mapping[str, Tensor]) -> None:
        """Restore everything; a state without that of a guard resets the guard."""
        if self._guard is None:
            restore_state(self, state)
            return
        of_guard = {k.removeprefix("guard."): v for k, v in state.items() if k.startswith("guard.")}
        guard = self._guard.anew()
        if of_guard:
            guard.load_state_dict(of_guard)
        restore_state(self, {k: v for k, v in state.items() if not k.startswith("guard.")})
        self._guard = guard

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Tensor],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """What ``load_state_dict`` of a module calls for each part of it, here for an adapter as such a part."""
        self._prefix = prefix
        try:
            self.load_state_dict({key.removeprefix(prefix): tensor for key, tensor in state_dict.items()})
        except ValueError as error:
            error_msgs.append(f"{prefix.removesuffix('.')}: {error}")

    @staticmethod
    def _forgive_missing(adapter: nn.Module, keys: Any) -> None:
        """The networks inside have no entries of their own in a state: they are not missing from it."""
        prefix = cast(Persistent, adapter)._prefix
        keys.missing_keys[:] = [key for key in keys.missing_keys if not key.startswith(prefix)]

    def train(self, mode: bool = True) -> Self:
        """Nothing: an adapter has one mode, whatever its parent does."""
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        probe = torch.empty(0, dtype=self.dtype, device=self.device)
        if (moved := fn(probe)).device == probe.device and moved.dtype == probe.dtype:
            return self
        raise RuntimeError("an adapter stays where its model is: move or cast the model, then wrap it again")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A second adapter in the same state, on the same model: weights stay shared."""
        twin = type(self)(self.model, **self.arguments)  # type: ignore[call-arg]
        twin.load_state_dict(self.state_dict())
        return twin

    def __reduce__(self) -> Never:
        raise TypeError("adapters are not pickled: use save() and grotta.load()")

    def __repr__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.arguments.items())
        return f"{type(self).__name__}({type(self.model).__name__}{options})"
