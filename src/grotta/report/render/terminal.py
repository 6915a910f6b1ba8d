"""Tables for the terminal."""

from rich import box
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from grotta.report.render.markdown import beside, footnotes, gain, number, row_name
from grotta.report.table import Cell, Table

_STYLES = {"best": "bold", "second": "underline", "": ""}


def to_rich(table: Table) -> Group:
    """The table with its title and notes: best bold, second underlined, the paper's number dim beside ours."""
    drawn = RichTable(box=box.SIMPLE_HEAD)
    drawn.add_column(table.header, no_wrap=True)
    for head in table.heads:
        drawn.add_column(head, justify="right")
    for row in table.rows:
        drawn.add_row(Text(row_name(row)), *map(_cell, row.cells))
    # not the table's own title, which is broken to the table's width
    return Group(Text(table.title, style="bold"), drawn, *(Text(note, style="dim") for note in footnotes(table)))


def _cell(cell: Cell) -> Text:
    # styled parts, not a styled whole: that would underline the padding too
    parts = [(number(cell), _STYLES[cell.rank])]
    if cell.gain is not None:
        parts.append((f" {gain(cell)}", "bold green"))
    if beside(cell):
        parts.append((f" ({beside(cell)})", "dim"))
    return Text.assemble(*parts)
