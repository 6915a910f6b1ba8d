"""The cells of a run's directory: which are finished, which are out of date, which are missing."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from grotta._files import locked
from grotta.bench.spec import CellSpec
from grotta.bench.store.freshness import Freshness
from grotta.bench.store.results import CellResult, DamagedCellError, cell_directory, read_result, result_mark


@dataclass(frozen=True)
class Current:
    """The state of a cell in a run's directory: a current result, a stale one, or none."""

    result: CellResult | None = None  # the finished cell, if it is current
    stale: str = ""  # why the result does not count: damaged or out of date
    mark: str = ""  # of the result that was looked at, see :func:`grotta.bench.store.results.result_mark`


class Store:
    """The cells in ``<out>/cells/``, compared with the data found from ``data_root``."""

    def __init__(self, out: Path, data_root: Path | None = None) -> None:
        self.out = out
        self._freshness = Freshness(data_root)

    def current(self, spec: CellSpec) -> Current:
        """The state of a cell; the one place where this is decided."""
        directory = cell_directory(self.out, spec)
        mark = result_mark(directory)
        try:
            result = read_result(directory)
        except DamagedCellError as error:
            return Current(stale=str(error), mark=mark)
        if result is None:
            return Current(mark=mark)
        if change := self._freshness.change(result):
            return Current(stale=f"the cell in {directory} is out of date: {change}", mark=mark)
        return Current(result=result, mark=mark)


def hold_cell(directory: Path, *, wait: bool = True) -> AbstractContextManager[None]:
    """Hold the cell in ``directory`` for this process alone; see :func:`grotta._files.locked`."""
    directory.mkdir(parents=True, exist_ok=True)
    return locked(directory, wait=wait)


def newer_result(directory: Path, mark: str) -> CellResult | None:
    """The result that another run has written since one with ``mark`` was looked at, if it is intact."""
    if result_mark(directory) in ("", mark):
        return None
    try:
        return read_result(directory)
    except DamagedCellError:
        return None
