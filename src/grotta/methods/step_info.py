"""What a step saw and did."""

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
    def __get__(self, obj: object, owner: type) -> float | None: ...
    def __get__(self, obj: object | None, owner: type) -> "float | _Number | None":
        if obj is None:
            return self
        value = obj.__dict__[self.name]
        if isinstance(value, Tensor):
            value = obj.__dict__[self.name] = value.item()
        return value  # type: ignore[no-any-return]

    def __set__(self, obj: object, value: object) -> None:
        raise AttributeError(f"{type(obj).__name__}.{self.name} is read-only")


class StepInfo:
    """One step of an adapter; ``None`` stands for what its method does not have.

    Logs, plots, metrics and pages read this and nothing else. Numbers computed on a device are fetched when they are
    read, so that a step never waits for them.

    >>> info = StepInfo(step=1, batch_size=2, adapted=True, loss=torch.tensor(0.5))
    >>> info.loss, info.zeta
    (0.5, None)
    """

    zeta = _Number()  # imbalance score of the batch's predictions, in [0, 1)
    lam = _Number()  # weight of the feature graph in the bias-guided output
    loss = _Number()  # what the step minimised
    entropy = _Number()  # mean entropy of the predictions before output adaptation, in nats
    confidence = _Number()  # mean largest probability of the same
    bank_size = _Number()  # images in the memory after the step

    def __init__(self, *, step: int, batch_size: int, adapted: bool, **numbers: Tensor | float | None) -> None:
        self.step = step  # batches seen, this one included
        self.batch_size = batch_size
        self.adapted = adapted  # whether parameters or statistics moved
        for name in _NUMBERS:
            self.__dict__[name] = numbers.pop(name, None)
        if numbers:
            raise TypeError(f"unknown fields {sorted(numbers)}")

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, fetched from the device at once."""
        waiting = [name for name in _NUMBERS if isinstance(self.__dict__[name], Tensor)]
        if waiting:
            values = torch.stack([self.__dict__[name].detach().double() for name in waiting]).tolist()
            for name, value in zip(waiting, values):
                self.__dict__[name] = int(value) if name == "bank_size" else value
        return {name: self.__dict__[name] for name in ("step", "batch_size", "adapted", *_NUMBERS)}

    def __repr__(self) -> str:
        return f"StepInfo({', '.join(f'{k}={v!r}' for k, v in self.as_dict().items())})"


_NUMBERS = [name for name, value in vars(StepInfo).items() if isinstance(value, _Number)]
