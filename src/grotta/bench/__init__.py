"""The benchmark: cells, grids of cells, and where they run."""

from grotta.bench.cell.loop import run_cell
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Event, Failure, Progress
from grotta.bench.run import run_grid
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult, DamagedCellError, load_results

__all__ = [
    "CellResult",
    "CellSpec",
    "CellTask",
    "DamagedCellError",
    "Event",
    "Failure",
    "Progress",
    "load_results",
    "run_cell",
    "run_grid",
]
