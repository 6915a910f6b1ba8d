"""How the numbers of a table are written, in every format: spread, gain, the paper's number beside ours, footnotes."""

from grotta.report.printed import GAIN
from grotta.report.table import DECIMALS, Cell, Row, Table

INCOMPLETE = "* Not on all the streams of its column: not ranked."
NO_AVERAGE = "–* A row that lacks a number in a column has no average, and is not ranked there."


def number(cell: Cell) -> str:
    """The number in a cell as printed, ``""`` for a blank, a dash for an average that lacks a column.

    >>> number(Cell(13.449, 0.25)), number(Cell()), number(Cell(complete=False))
    ('13.4 ± 0.2', '', '–*')
    """
    if cell.mean is None:
        return "" if cell.complete else "–*"
    spread = "" if cell.std is None else f" ± {cell.std:.{DECIMALS}f}"
    return f"{cell.mean:.{DECIMALS}f}{spread}{'' if cell.complete else '*'}"


def gain(cell: Cell) -> str:
    """The gain in a cell as printed, ``""`` if there is none.

    >>> gain(Cell(13.4, gain=14.6)), gain(Cell(13.4, gain=14.6, gain_of_all=False)), gain(Cell(13.4))
    ('↓14.6', '↓14.6*', '')
    """
    return "" if cell.gain is None else f"↓{cell.gain:.{DECIMALS}f}{'' if cell.gain_of_all else '*'}"


def row_name(row: Row) -> str:
    """The name of a row with a dagger if it is marked."""
    return f"{row.label} †" if row.mark else row.label


def beside(cell: Cell) -> str:
    """The paper's number with its gain, and ours minus it; ``""`` where the paper has none.

    >>> beside(Cell(13.4, paper=13.1)), beside(Cell(paper=13.1)), beside(Cell(13.4, paper=7.7, paper_gain=14.6))
    ('13.1, +0.3', '13.1', '7.7 ↓14.6, +5.7')
    """
    if cell.paper is None:
        return ""
    theirs = f"{cell.paper:.1f}{'?' if cell.paper_note else ''}"
    if cell.paper_gain is not None:
        theirs += f" ↓{cell.paper_gain:.1f}{'?' if cell.paper_gain_note else ''}"
    return theirs + ("" if cell.difference is None else f", {signed(cell.difference)}")


def plain_number(value: float, decimals: int) -> str:
    """A number of a listing; whole ones that count something have no decimals.

    >>> plain_number(1234.5, 2), plain_number(1234, 2)
    ('1,234.50', '1,234')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"


def item(value: str | float | None, decimals: int) -> str:
    """A value of a listing.

    >>> item(1.25, 1), item("fog", 1), item(None, 1)
    ('1.2', 'fog', '')
    """
    return value or "" if value is None or isinstance(value, str) else plain_number(value, decimals)


def signed(value: float) -> str:
    """A difference with its sign.

    >>> signed(1.9), signed(-3.3)
    ('+1.9', '−3.3')
    """
    return f"{value:+.{DECIMALS}f}".replace("-", "−")


def footnotes(table: Table, place: str = "In brackets") -> list[str]:
    """The notes of a table, with those on its marks; ``place`` is where the paper's numbers are."""
    cells = [cell for row in table.rows for cell in row.cells]
    notes = list(table.notes)
    if any(cell.mean is not None and not cell.complete for cell in cells):
        notes.append(INCOMPLETE)
    if any(cell.mean is None and not cell.complete for cell in cells):
        notes.append(NO_AVERAGE)
    if table.paper is not None:
        notes.append(f"{place}: the paper's number ({table.paper.caption}), and ours minus it.")
    if any(cell.gain is not None or cell.paper_gain is not None for cell in cells):
        limited = (
            "" if all(cell.gain_of_all for cell in cells) else "; *: of the rows that are ranked there, not of all"
        )
        notes.append(f"↓ Gain over the second best{limited}.{_gain_elsewhere(table)}")
    for row in table.rows:
        doubts = dict.fromkeys(cell.paper_note for cell in row.cells if cell.paper_note)
        notes += [f"? {row.label}, paper: {doubt}." for doubt in doubts]
        doubts = dict.fromkeys(cell.paper_gain_note for cell in row.cells if cell.paper_gain_note)
        notes += [f"? {row.label}, the paper's gain: {doubt}." for doubt in doubts]
    return notes


def _gain_elsewhere(table: Table) -> str:
    """The paper's gain where its average is not in the table, being over other columns."""
    if table.paper is None or table.paper.gain is None:
        return ""
    if any(cell.paper_gain is not None for row in table.rows for cell in row.cells):
        return ""
    doubts = [table.paper.note(row, GAIN) for row in table.paper.rows]
    doubt = next((f" ({note})" for note in doubts if note), "")
    return f" The paper's, in its average over all its columns, is {table.paper.gain:.1f}{doubt}."
