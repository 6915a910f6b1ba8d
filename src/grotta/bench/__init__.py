"""The benchmark: cells, the grid of them, and where they run."""

from grotta.bench.cell.loop import Progress, run_cell
from grotta.bench.events import Event, Failure
from grotta.bench.run import run_grid
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult, DamagedCellError, load_results

__all__ = [
    "CellResult",
    "CellSpec",
    "DamagedCellError",
    "Event",
    "Failure",
    "Progress",
    "load_results",
    "run_cell",
    "run_grid",
]
