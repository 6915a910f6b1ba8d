"""A report as a value: sections of tables, figures and listings, and the cells behind them. Nothing here draws."""

from collections.abc import Iterable
from dataclasses import dataclass

from grotta.bench.store.results import CellResult
from grotta.report.figure import Figure
from grotta.report.table import Table

Line = tuple[str | float | None, ...]
SOURCES = "Data, networks, versions"
CELLS = "A cell is one method on one stream. Its command reproduces the numbers, bit for bit with the same versions."
WHICH_ERROR = (
    "Tables average over domains, as the paper does: each domain counts the same, however many images it has. The "
    "error over all images, where the curves end, is different if domains differ in length; each cell shows both."
)


@dataclass(frozen=True)
class Listing:
    """A table of anything: numbers sort as numbers, ``None`` is a blank."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[Line, ...]
    decimals: int = 1
    notes: tuple[str, ...] = ()

    @property
    def numeric(self) -> list[bool]:
        """For each column, whether it has numbers."""
        return [any(isinstance(row[place], int | float) for row in self.rows) for place in range(len(self.heads))]


Block = Table | Figure | Listing


@dataclass(frozen=True)
class Section:
    """A part of a report; ``where`` is the data that it is about, if its title does not say."""

    name: str
    title: str
    intro: str
    blocks: tuple[Block, ...]
    where: str = ""

    @property
    def heading(self) -> str:
        return f"{self.title}: {self.where}" if self.where else self.title

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def results(self) -> list[CellResult]:
        """The cells behind its tables and figures."""
        behind = [cell.results for table in self.tables for row in table.rows for cell in row.cells]
        behind += [block.results for block in self.blocks if isinstance(block, Figure)]
        return list({result.spec.id: result for results in behind for result in results}.values())


@dataclass(frozen=True)
class NamedCell:
    """A finished cell, and what it is called among the others of its report."""

    name: str
    result: CellResult


@dataclass(frozen=True)
class Report:
    """Everything that a report shows."""

    title: str
    sections: tuple[Section, ...]
    used: Listing
    cells: tuple[NamedCell, ...]
    warnings: tuple[str, ...] = ()

    @property
    def results(self) -> list[CellResult]:
        return [cell.result for cell in self.cells]

    def showing(self, results: Iterable[CellResult]) -> list[Section]:
        """The sections with any of these cells behind their tables and figures."""
        wanted = {result.spec.id for result in results}
        return [section for section in self.sections if wanted & {result.spec.id for result in section.results}]

    def main_tables(self, results: Iterable[CellResult]) -> list[Table]:
        """The first tables of as few sections as show all these cells, in the order of the report."""
        left = {result.spec.id for result in results}
        shown: set[str] = set()
        found = [(section, {r.spec.id for r in section.results}) for section in self.sections if section.tables]
        for section, ids in sorted(found, key=lambda pair: -len(pair[1] & left)):
            if ids & left:
                shown.add(section.name)
                left -= ids
        return [section.tables[0] for section in self.sections if section.name in shown]

    @property
    def tables(self) -> list[Table]:
        return [table for section in self.sections for table in section.tables]

    @property
    def listings(self) -> list[Listing]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Listing)]

    @property
    def figures(self) -> list[Figure]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]
