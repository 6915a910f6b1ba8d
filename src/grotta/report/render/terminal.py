"""Tables for the terminal."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from grotta.report.document import Listing
from grotta.report.render.notation import beside, footnotes, gain, item, number, row_name
from grotta.report.render.plain_text import encodable
from grotta.report.table import Cell, Table

_STYLES = {"best": "bold", "second": "underline", "": ""}


def print_block(console: Console, block: Table | Listing) -> None:
    """Print a table or a listing with its title and notes, in characters that the terminal has.

    Of a table, the best numbers are bold, the second underlined and the paper's dim.
    """

    def text(content: str, style: str = "") -> Text:
        return Text(encodable(content, console.encoding), style=style)

    drawn = RichTable(box=box.SIMPLE_HEAD)
    if isinstance(block, Table):
        notes = footnotes(block)
        drawn.add_column(text(block.header), no_wrap=True)
        for head in block.heads:
            drawn.add_column(text(head), justify="right")
        for row in block.rows:
            # styled parts, not a styled whole: that would underline the padding too
            cells = (Text().join(text(*part) for part in _parts(cell)) for cell in row.cells)
            drawn.add_row(text(row_name(row)), *cells)
    else:
        notes = list(block.notes)
        for head, right in zip(block.heads, block.numeric):
            drawn.add_column(text(head), justify="right" if right else "left")
        for line in block.rows:
            drawn.add_row(*(text(item(value, block.decimals)) for value in line))
    console.print(text(block.title, "bold"))  # not the table's own title, which is wrapped to its width
    console.print(drawn)
    for note in notes:
        console.print(text(note, "dim"))


def print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print each line on its own, in characters that the terminal has."""
    for line in lines:
        console.print(Text(encodable(line, console.encoding), style=style), soft_wrap=True)


def _parts(cell: Cell) -> list[tuple[str, str]]:
    parts = [(number(cell), _STYLES[cell.rank])]
    if cell.gain is not None:
        parts.append((f" {gain(cell)}", "bold green"))
    if beside(cell):
        parts.append((f" ({beside(cell)})", "dim"))
    return parts
