"""A guard for any method: the source answers while adaptation hurts, and a collapse is rolled back."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from grotta.functional.harm import Verdict, collapsed, judge

WINDOW = 512  # images over which source and adapted model are compared; older ones fade
ENOUGH = 128  # images before anything is concluded
SOURCE, ADAPTED = 0, 1

State = dict[str, Tensor]


class Watched(NamedTuple):
    """Sums over the recent stream; old images fade."""

    confidence: Tensor  # (2,), of the source and of the adapted model
    answered: Tensor  # (2, C)
    agreed: Tensor  # 0-dim
    images: Tensor  # 0-dim


class Guard:
    """Compares an adapted model with its source over a window; says which to trust and when to roll back.

    A snapshot of the adapter's state becomes the last good one only if adaptation still did well a whole window later,
    because damage shows late.
    """

    def __init__(self, num_classes: int, *, device: torch.device, dtype: torch.dtype) -> None:
        self._empty = Watched(
            torch.zeros(2, device=device, dtype=dtype),
            torch.zeros(2, num_classes, device=device, dtype=dtype),
            torch.zeros((), device=device, dtype=dtype),
            torch.zeros((), device=device, dtype=dtype),
        )
        self.watched = self._empty
        self.fallen = False  # whether the source answers
        self.rollbacks = 0
        self.since = 0  # images since the last verdict, snapshot or return
        self.start: State | None = None
        self.candidate: State | None = None
        self.good: State | None = None

    def anew(self) -> "Guard":
        """A new guard for the same model."""
        images = self._empty.images
        return Guard(self._empty.answered.shape[1], device=images.device, dtype=images.dtype)

    def watch(self, source: Tensor, adapted: Tensor) -> None:
        """Add a batch, for which the two predict ``source`` and ``adapted`` (B, C), and judge the window so far."""
        both = torch.stack([source, adapted])  # (2, B, C)
        confidence, answers = both.max(2)
        classes = torch.zeros_like(self.watched.answered).scatter_add_(1, answers, torch.ones_like(confidence))
        new = (
            confidence.sum(1),
            classes,
            (answers[0] == answers[1]).sum(),
            torch.full_like(self._empty.images, len(source)),
        )
        keep = (1 - 1 / WINDOW) ** len(source)
        self.watched = Watched(*(keep * old + add for old, add in zip(self.watched, new)))
        self.since += len(source)
        if float(self.watched.images) < ENOUGH:
            return
        verdict = judge(self.accuracies(), collapsed(self.watched.answered), fallen=self.fallen)
        if (verdict is Verdict.SOURCE) != self.fallen:
            self.fallen = verdict is Verdict.SOURCE
            self.since = 0

    def accuracies(self) -> Tensor:
        """Estimated accuracy (2,) of the source and of the adapted model: their mean confidence over the window."""
        return self.watched.confidence / self.watched.images.clamp_min(1)

    def rollback_is_due(self) -> bool:
        """Whether the adapted model has collapsed, or has been the worse one for a whole window."""
        if not self.fallen:
            return False
        return self.since >= WINDOW or bool(collapsed(self.watched.answered))

    def snapshot_is_due(self) -> bool:
        """Whether adaptation has done well for another window."""
        return not self.fallen and (self.candidate is None or self.since >= WINDOW)

    def keep(self, state: State) -> None:
        """Take a snapshot; the previous one has proved good by now."""
        self.good, self.candidate = self.candidate, state
        self.since = 0

    def roll_back(self) -> State:
        """The last good state, or that of the beginning if there is no other. A good state is used once."""
        state = self.good or self.start
        assert state is not None
        self.rollbacks += 1
        self.good = self.candidate = None
        self.watched = self._empty
        self.since = 0
        return state

    def numbers(self) -> dict[str, Tensor | float]:
        """What a step reports."""
        source, adapted = self.accuracies()
        return {
            "estimated_accuracy": source if self.fallen else adapted,
            "source_accuracy": source,
            "agreement": self.watched.agreed / self.watched.images.clamp_min(1),
            "guard": float(self.fallen),
            "rollbacks": float(self.rollbacks),
        }

    def state_dict(self) -> State:
        """Copies of the window, the counters and the snapshots."""
        state = {f"watched.{name}": tensor.clone() for name, tensor in self.watched._asdict().items()}
        state["counters"] = torch.tensor([self.fallen, self.rollbacks, self.since], device="cpu")
        for name in ("start", "candidate", "good"):
            snapshot: State | None = getattr(self, name)
            state |= {f"{name}.{key}": tensor.clone() for key, tensor in (snapshot or {}).items()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``; one that does not fit raises a ``ValueError`` and changes nothing."""
        watched = []
        for name, own in self._empty._asdict().items():
            given = state.get(f"watched.{name}")
            if given is None or given.shape != own.shape:
                raise ValueError(f"the state of a guard must have 'watched.{name}' of shape {tuple(own.shape)}")
            watched.append(given.to(own, copy=True))
        if "counters" not in state or state["counters"].shape != (3,):
            raise ValueError("the state of a guard must have three 'counters'")
        self.watched = Watched(*watched)
        fallen, self.rollbacks, self.since = state["counters"].tolist()
        self.fallen = bool(fallen)
        for name in ("start", "candidate", "good"):
            snapshot = {k.removeprefix(f"{name}."): v.clone() for k, v in state.items() if k.startswith(f"{name}.")}
            setattr(self, name, snapshot or None)
