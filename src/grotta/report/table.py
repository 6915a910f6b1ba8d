"""Tables as values: finished cells in, rows and columns with their marks out. Nothing here draws or writes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from grotta.bench.store.results import CellResult
from grotta.report.printed import AVERAGE, GAIN, PrintedTable

Rank = Literal["", "best", "second"]
DECIMALS = 1  # as the paper prints


class Entry(NamedTuple):
    """A number to go into a table: the error in per cent of ``result`` in a row and a column."""

    row: str
    column: str
    value: float
    result: CellResult


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    mean: float | None = None  # over the runs; ``None`` is a blank
    std: float | None = None  # sample standard deviation over the runs, ``None`` for one run
    rank: Rank = ""  # of the mean in its column, as it is printed
    gain: float | None = None  # over the second best, where the column sums the table up and the best is alone
    gain_of_all: bool = True  # whether every row was ranked for that gain
    # whether it has all the streams of its column or, as an average, all columns; if not, it is not ranked
    complete: bool = True
    paper: float | None = None  # the number printed in the paper
    paper_note: str = ""  # why that number is in doubt
    paper_gain: float | None = None  # the gain printed in the paper
    paper_gain_note: str = ""  # why that number is in doubt
    results: tuple[CellResult, ...] = ()  # the cells of the benchmark behind it

    @property
    def difference(self) -> float | None:
        """Ours, as printed, minus the paper's."""
        if self.mean is None or self.paper is None:
            return None
        return round(printed(self.mean) - self.paper, DECIMALS)


@dataclass(frozen=True)
class Row:
    """One row: its name, its cells, and a mark such as "reconstruction"."""

    label: str
    cells: tuple[Cell, ...]
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Errors in per cent by row and column."""

    name: str  # short, for file names and links
    title: str  # what it shows
    header: str  # of the rows' names
    columns: tuple[str, ...]  # their keys
    heads: tuple[str, ...]  # their names as shown
    rows: tuple[Row, ...]  # in order
    notes: tuple[str, ...] = ()  # what a reader must know
    paper: PrintedTable | None = None  # the paper's table beside it, if there is one

    def cell(self, row: str, column: str) -> Cell:
        """The cell in a row and a column, by their names."""
        cells = next(r.cells for r in self.rows if r.label == row)
        return cells[self.columns.index(column)]


def pivot(
    entries: Iterable[Entry],
    *,
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    header: str = "Method",
    average: bool = True,
    paper: PrintedTable | None = None,
    paper_row: Callable[[str], str] = str,
    label: Callable[[str], tuple[str, str]] = lambda row: (row, ""),
    head: Callable[[str], str] = str,
    rivals: bool = True,
    applies: Callable[[str, str], bool] = lambda row, column: True,
    notes: Sequence[str] = (),
) -> Table:
    """The table of ``entries``, with the average over the columns last.

    A place with several entries holds the mean over its runs; a run is one pair of seeds, and averages what it has in
    that place (orders, source models) before runs are compared. The average over the columns is blank, and not
    complete, where one of them is.

    Args:
        entries: the numbers.
        name, title, header, notes: of the table.
        columns: their keys, in order; entries of others are left out.
        rows: the rows' keys, in order; one without entries is left out.
        average: whether to add the average of two or more columns.
        paper: the paper's table of the same thing.
        paper_row: from a row's key to the paper's name of it.
        label: from a row's key to the name shown and a mark on it.
        head: from a column's key to the name shown.
        rivals: whether rows compete on the same streams: they are then ranked, and a row that lacks a stream is marked.
        applies: whether a column applies to a row; if not, the row's average leaves it out.
    """
    places: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        places[entry.row, entry.column].append(entry)
    keys = [row for row in rows if any((row, column) in places for column in columns)]
    grid = [[places.get((row, column), []) for column in columns] for row in keys]
    streams = [set().union(*map(_streams, column)) if rivals else None for column in zip(*grid)]
    cells = [[_cell(here, wanted) for here, wanted in zip(line, streams)] for line in grid]
    names = tuple(columns)
    if average and len(columns) > 1:
        used = [[applies(row, column) for column in columns] for row in keys]
        cells = [[*line, _average(line, found, use)] for line, found, use in zip(cells, grid, used)]
        names = (*names, AVERAGE)
    if rivals:
        ranked = [_ranked(column, gain=key == names[-1]) for key, column in zip(names, zip(*cells))]
        cells = [list(line) for line in zip(*ranked)]
    if paper is not None and len({paper_row(key) for key in keys} & set(paper.rows)) < 2:
        paper = replace(paper, gain=None)  # it is over methods that this table does not have
    body = []
    for key, line in zip(keys, cells):
        beside = [_beside(cell, paper, paper_row(key), column, columns) for cell, column in zip(line, names)]
        shown, mark = label(key)
        body.append(Row(shown, tuple(beside), mark))
    heads = tuple(column if column == AVERAGE else head(column) for column in names)
    return Table(name, title, header, names, heads, tuple(body), tuple(notes), paper)


def printed(value: float) -> float:
    """``value`` as a table prints it; ranks and differences are those of printed numbers, as in the paper.

    >>> printed(18.649)
    18.6
    """
    return float(f"{value:.{DECIMALS}f}")


def _streams(entries: Iterable[Entry]) -> set[tuple[str, int]]:
    return {(entry.result.stream_hash, entry.result.spec.seed) for entry in entries}


def _runs(entries: Iterable[Entry]) -> dict[tuple[int, int], float]:
    """The mean of each run."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for entry in entries:
        values[entry.result.spec.stream_seed, entry.result.spec.seed].append(entry.value)
    return {run: fmean(values[run]) for run in sorted(values)}


def _cell(entries: Sequence[Entry], wanted: set[tuple[str, int]] | None) -> Cell:
    if not entries:
        return Cell()
    runs = list(_runs(entries).values())
    results = tuple(sorted((entry.result for entry in entries), key=_order))
    complete = wanted is None or _streams(entries) == wanted
    return Cell(fmean(runs), _spread(runs), complete=complete, results=results)


def _order(result: CellResult) -> tuple[float, int, int, str]:
    return -result.spec.gamma, result.spec.stream_seed, result.spec.seed, result.spec.id


def _average(cells: Sequence[Cell], places: Sequence[Sequence[Entry]], used: Sequence[bool]) -> Cell:
    cells = [cell for cell, use in zip(cells, used) if use]
    means = [cell.mean for cell in cells if cell.mean is not None]
    if len(means) < len(cells):
        return Cell(complete=False)
    runs = [_runs(place) for place, use in zip(places, used) if use]
    shared = sorted(set.intersection(*map(set, runs)))
    results = {result.spec.id: result for cell in cells for result in cell.results}
    return Cell(
        fmean(means),
        _spread([fmean(column[run] for column in runs) for run in shared]),
        complete=all(cell.complete for cell in cells),
        results=tuple(results.values()),
    )


def _spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _ranked(column: Sequence[Cell], *, gain: bool) -> list[Cell]:
    """Mark the best of a column and the second; equals share a rank, and two bests leave no second."""
    values = sorted(printed(c.mean) for c in column if c.mean is not None and c.complete)
    if len(values) < 2:
        return list(column)
    best, second = values[:2]
    ranks: dict[float, Rank] = {second: "second", best: "best"}
    alone = second > best
    all_ranked = len(values) == len(column)

    def mark(cell: Cell) -> Cell:
        if cell.mean is None or not cell.complete:
            return cell
        rank = ranks.get(printed(cell.mean), "")
        lead = round(second - best, DECIMALS) if gain and alone and rank == "best" else None
        return replace(cell, rank=rank, gain=lead, gain_of_all=lead is None or all_ranked)

    return [mark(cell) for cell in column]


def _beside(cell: Cell, paper: PrintedTable | None, row: str, column: str, averaged: Sequence[str]) -> Cell:
    """The paper's number is put beside ours; its average only beside one over the same columns."""
    if paper is None or (column == AVERAGE and {*averaged, AVERAGE} != set(paper.columns)):
        return cell
    cell = replace(cell, paper=paper.value(row, column), paper_note=paper.note(row, column))
    gain = paper.gain_of(row) if column == AVERAGE else None
    return cell if gain is None else replace(cell, paper_gain=gain, paper_gain_note=paper.note(row, GAIN))
