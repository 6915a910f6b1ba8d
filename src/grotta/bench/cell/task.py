"""A cell to run: its spec, where, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grotta.bench.inputs.opened import CellInputs
from grotta.bench.spec import CellSpec

CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True)
class CellTask:
    """A cell to run; small and picklable, so that it can be sent to another process or machine.

    Attributes:
        spec: the cell.
        out: the run's directory; the cell's files are in ``<out>/cells/<id>/``.
        data_root: where data is looked for first.
        device: where the network runs.
        checkpoint_seconds: at least this long between two checkpoints.
        wait: for another process that is running the same cell; otherwise that is a ``BusyError``.
        mark: of a result that does not count (stale or damaged); one with another mark is another run's and is used.
        open_inputs: opens the data and the network on a device; by default they are looked for on this machine.
    """

    spec: CellSpec
    out: Path
    data_root: Path | None = None
    device: str = "cpu"
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    wait: bool = True
    mark: str = ""
    open_inputs: Callable[[CellSpec, str], CellInputs] | None = None
