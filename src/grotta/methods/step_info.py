"""What a step saw and did."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, overload

import torch
from torch import Tensor


class _Number:
    """A number that may still be on its way from the device: it is waited for when it is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, obj: None, owner: type) -> "_Number": ...
    @overload
    def __get__(self, obj: "StepInfo", owner: type) -> float | None: ...
    def __get__(self, obj: "StepInfo | None", owner: type) -> "float | _Number | None":
        if obj is None:
            return self
        value = obj._values[self.name]
        if isinstance(value, Tensor):
            value = obj._values[self.name] = value.item()
        return value

    def __set__(self, obj: object, value: object) -> None:
        raise AttributeError(f"{type(obj).__name__}.{self.name} is read-only")


class StepInfo:
    """One step of an adapter; ``None`` where the method has no such number.

    Logs, plots, metrics and pages read this and nothing else. Numbers computed on a device are fetched when they are
    read, so that a step never waits for them.

    >>> info = StepInfo(step=1, batch_size=2, adapted=True, loss=torch.tensor(0.5))
    >>> info.loss, info.zeta, info.extra
    (0.5, None, {})
    """

    zeta = _Number()  # imbalance score of the batch's predictions, in [0, 1)
    lam = _Number()  # weight of the feature graph in the bias-guided output
    loss = _Number()  # what the step minimised
    entropy = _Number()  # mean entropy of the predictions before output adaptation, in nats
    confidence = _Number()  # mean largest probability of the same
    bank_size = _Number()  # images in the memory after the step

    def __init__(
        self,
        *,
        step: int,
        batch_size: int,
        adapted: bool,
        extra: Mapping[str, Tensor | float] = MappingProxyType({}),
        **numbers: Tensor | float | None,
    ) -> None:
        self.step = step  # batches seen, this one included
        self.batch_size = batch_size
        self.adapted = adapted  # whether parameters or statistics moved
        self._values = {name: numbers.pop(name, None) for name in _NUMBERS}
        if numbers:
            raise TypeError(f"unknown fields {sorted(numbers)}")
        if taken := [name for name in extra if name in ("step", "batch_size", "adapted", *_NUMBERS)]:
            raise ValueError(f"extra numbers must have names of their own, got {taken}")
        self._values |= extra

    @property
    def extra(self) -> dict[str, float]:
        """The numbers that only this method or output adaptation has, by name."""
        values = self.as_dict()
        return {name: values[name] for name in self._values if name not in _NUMBERS}

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, fetched from the device at once."""
        waiting = {name: value.detach() for name, value in self._values.items() if isinstance(value, Tensor)}
        if waiting:
            values = torch.stack([value.double() for value in waiting.values()]).tolist()
            self._values |= {name: int(v) if name == "bank_size" else v for name, v in zip(waiting, values)}
        return {"step": self.step, "batch_size": self.batch_size, "adapted": self.adapted, **self._values}

    def __repr__(self) -> str:
        return f"StepInfo({', '.join(f'{k}={v!r}' for k, v in self.as_dict().items())})"


_NUMBERS = [name for name, value in vars(StepInfo).items() if isinstance(value, _Number)]
