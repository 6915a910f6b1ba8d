"""The benchmark: cells, the grid of them, and where they run."""

from grotta.bench.results import CellResult, DamagedCellError, load_results
from grotta.bench.spec import CellSpec

__all__ = ["CellResult", "CellSpec", "DamagedCellError", "load_results"]
