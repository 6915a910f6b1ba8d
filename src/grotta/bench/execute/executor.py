"""The interface of executors: they run tasks somewhere and send their events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit


@dataclass(frozen=True)
class Workers:
    """How many cells run at once (by default one per core), and the address of an existing cluster to run them on."""

    count: int | None = None
    address: str | None = None


@dataclass(frozen=True)
class Executor:
    """A way to run cells."""

    # runs the tasks, cheapest first, and sends their events in the calling thread. Each task ends with ``Finished`` or
    # ``Failure``.
    run: Callable[[Sequence[CellTask], Workers, Emit], None]
    # cells run on other machines: an address is accepted, and the device is checked there and not here
    remote: bool = False
