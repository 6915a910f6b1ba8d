"""One stream: its adapters, the work that waits for it, and what is known of it."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from grotta.methods.step_info import StepInfo
from grotta.serve.catalogue import ServedModel
from grotta.serve.protocol.tensors import Array
from grotta.serve.streams.history import History
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.strand import Strand


@dataclass
class Counts:
    """What a stream has done since this server knows it."""

    requests: int = 0
    images: int = 0
    adapted: int = 0
    skipped: int = 0
    failed: int = 0
    correct: int = 0
    scored: int = 0
    reference_correct: int = 0
    reference_scored: int = 0


@dataclass(eq=False)
class Stream:
    """A stream that the server knows: in memory if ``pair`` is there, else on disk.

    Whoever changes it or asks it something holds ``turn``, which is given in order of arrival. What touches the learner
    goes through ``strand``, in that order too.
    """

    model: ServedModel
    name: str
    strand: Strand
    pair: Pair | None = None
    epoch: int = 1
    lapses: int = 0  # of the server's lease, when ownership was last certain
    started: bool = False  # a sequence is under way
    created: float = field(default_factory=time.time)
    used: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    saved_step: int = 0
    step: int = 0  # of the learner, as last seen
    unsaved: int = 0  # steps since the last checkpoint
    bytes: int = 0
    counts: Counts = field(default_factory=Counts)
    history: History = field(default_factory=History)
    info: dict[str, Any] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def key(self) -> tuple[str, str]:
        """Model and name."""
        return self.model.name, self.name

    @property
    def is_live(self) -> bool:
        """Whether it is in memory."""
        return self.pair is not None

    def answered(self, probs: Array, frame: Array | None) -> None:
        """Take note of an answer (B, classes); ``frame`` is the first of its images."""
        self.started, self.used = True, time.monotonic()
        self.counts.requests += 1
        self.counts.images += len(probs)
        self.history.answered(time.time(), probs, frame)

    def leave_memory(self) -> None:
        """Keep only what is known of it."""
        self.pair, self.bytes = None, 0
        self.history.frames.clear()

    def learned(self, info: StepInfo | None, lag: int) -> dict[str, Any]:
        """Take note of a step of the learner."""
        values = info.as_dict() if info is not None else {}
        if self.model.asks_source and "source_accuracy" in values:  # estimated by how often the source agrees
            values["agreement"] = values["source_accuracy"]
        self.info = values
        self.step = int(values.get("step", self.step))
        self.counts.adapted += 1
        self.history.learned(time.time(), values, lag)
        return values

    def summary(self) -> dict[str, Any]:
        """What a list of streams tells of it."""
        return {
            "model": self.model.name,
            "name": self.name,
            "state": "live" if self.is_live else "disk",
            "step": self.step,
            "unsaved_steps": self.unsaved,
            "waiting": len(self.strand),
            "created": self.created,
            "idle_seconds": round(time.monotonic() - self.used, 1),
            **vars(self.counts),
        }
