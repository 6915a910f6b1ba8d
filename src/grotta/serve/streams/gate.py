"""Answers go first: a learner stands still while one is being made."""

import threading
import time
from types import TracebackType

from torch import nn

_PATIENCE = 0.25  # seconds that one step stands still at most, so that a busy server still learns


class Gate:
    """Counts the answers under way; learners wait for none.

    Threads that run networks take the interpreter from each other at every operator, which makes both several times
    slower. A learner that stops at its next layer leaves it to the answer.

    >>> gate = Gate()
    >>> with gate:
    ...     gate.busy
    True
    >>> gate.busy
    False
    """

    def __init__(self) -> None:
        self._under_way = 0
        self._none = threading.Condition()
        self._step = threading.local()

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return self._under_way > 0

    def __enter__(self) -> None:
        with self._none:
            self._under_way += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._none:
            self._under_way -= 1
            if not self._under_way:
                self._none.notify_all()

    def begin_step(self) -> None:
        """This thread begins a step: it may stand still for as long as a step may."""
        self._step.patience = _PATIENCE

    def watch(self, learner: nn.Module) -> None:
        """Have ``learner`` look at the gate before each of its layers, once where learners share them."""
        for module in learner.modules():
            leaf = not any(True for _ in module.children())
            if leaf and self.stand_still not in module._forward_pre_hooks.values():
                module.register_forward_pre_hook(self.stand_still)

    def stand_still(self, *_: object) -> None:
        """Wait while an answer is under way, as long as this thread's step may."""
        if not self._under_way:
            return
        patience: float = getattr(self._step, "patience", 0.0)
        if patience > 0:
            began = time.monotonic()
            with self._none:
                self._none.wait_for(lambda: not self._under_way, patience)
            self._step.patience = patience - (time.monotonic() - began)
