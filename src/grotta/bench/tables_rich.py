"""Tables for the terminal."""

from rich import box
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from grotta.bench.tables import Cell, Table
from grotta.bench.tables_text import beside, footnotes, number, row_name

_STYLES = {"best": "bold", "second": "underline", "": ""}


def to_rich(table: Table) -> Group:
    """The table with its title and notes: best bold, second underlined, the paper's number dim beside ours."""
    drawn = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    drawn.add_column(table.header, no_wrap=True)
    for head in table.heads:
        drawn.add_column(head, justify="right")
    for row in table.rows:
        drawn.add_row(Text(row_name(row)), *map(_cell, row.cells))
    return Group(drawn, *(Text(note, style="dim") for note in footnotes(table)))


def _cell(cell: Cell) -> Text:
    text = Text(number(cell), style=_STYLES[cell.rank])
    if cell.gain is not None:
        text = Text.assemble(text, (f" ↓{cell.gain:.1f}", "bold green"))
    return Text.assemble(text, (f" ({beside(cell)})", "dim")) if beside(cell) else text
