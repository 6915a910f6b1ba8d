"""The progress of a grid: events in, numbers out. Displays read it; nothing here draws."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from grotta.bench.cost import cost
from grotta.bench.events import Event, Failure, Finished, Preparing, Progressed, Started, Waiting
from grotta.bench.spec import CellSpec

State = Literal["queued", "running", "waiting", "finished", "failed"]


@dataclass
class CellStatus:
    """One cell: its state, the share of it that is done, and its error in per cent so far (NaN: none yet)."""

    spec: CellSpec
    state: State = "queued"
    done: float = 0.0
    error: float = math.nan
    inherited: float = 1.0  # the share that was done before this run; all of it until the first progress


@dataclass
class Tracker:
    """The cells of a grid by id, and their progress as a whole.

    >>> spec = CellSpec(method="source", dataset="fashion-c", domains=("fog",), gamma=0.1)
    >>> tracker = Tracker([spec])
    >>> tracker.see(Failure(spec, "the disk is full"))
    >>> tracker.count("failed"), tracker.share_done
    (1, 1.0)
    """

    specs: Sequence[CellSpec]
    clock: Callable[[], float] = time.monotonic
    preparing: str = ""
    warnings: dict[str, None] = field(default_factory=dict)  # an ordered set

    def __post_init__(self) -> None:
        self.cells = {spec.id: CellStatus(spec) for spec in self.specs}
        self._start = self.clock()

    def see(self, event: Event) -> None:
        if isinstance(event, Preparing):
            self.preparing = f"{event.what} ({event.number} of {event.total})"
            return
        cell = self.cells[event.spec.id]
        if isinstance(event, Started):
            if self.preparing:
                self.preparing, self._start = "", self.clock()  # preparing data says nothing about the speed of cells
            cell.state = "running"
        elif isinstance(event, Progressed):
            cell.state, cell.error = "running", event.progress.error
            cell.done = event.progress.images / event.progress.total
            cell.inherited = min(cell.inherited, cell.done)
        elif isinstance(event, Waiting):
            cell.state = "waiting"
        elif isinstance(event, Finished):
            cell.state, cell.done, cell.error = "finished", 1.0, event.result.error
            self.warnings |= dict.fromkeys(event.result.warnings)
        elif isinstance(event, Failure):
            cell.state, cell.done = "failed", 1.0

    def count(self, *states: State) -> int:
        """How many cells are in one of these states."""
        return sum(cell.state in states for cell in self.cells.values())

    @property
    def share_done(self) -> float:
        """The share of all work that is done, in this run or before."""
        return self._weighted(lambda cell: cell.done) / max(self._weighted(lambda cell: 1.0), 1e-9)

    @property
    def seconds_left(self) -> float:
        """At the speed of this run so far; NaN while that is unknown."""
        here = self._weighted(lambda cell: cell.done - min(cell.inherited, cell.done))
        left = self._weighted(lambda cell: 1.0 - cell.done)
        return (self.clock() - self._start) * left / here if here else math.nan

    def _weighted(self, share: Callable[[CellStatus], float]) -> float:
        return sum(cost(cell.spec) * share(cell) for cell in self.cells.values())


def duration(seconds: float) -> str:
    """Seconds as a clock shows them.

    >>> duration(75), duration(3675), duration(float("nan"))
    ('1:15', '1:01:15', '-:--')
    """
    if math.isnan(seconds):
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
