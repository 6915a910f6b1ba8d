"""Tables for the terminal."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from grotta.report.document import Listing
from grotta.report.render.notation import beside, footnotes, gain, item, number, row_name
from grotta.report.render.plain_text import encodable
from grotta.report.table import Cell, Table

_STYLES = {"best": "bold", "second": "underline", "": ""}


@dataclass(frozen=True)
class TerminalTable:
    """A table with its title and notes as Rich shows it: best bold, second underlined, the paper's number dim.

    Characters that the terminal lacks are replaced by ones it has.
    """

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def text(content: str, style: str = "") -> Text:
            return Text(encodable(content, options.encoding), style=style)

        drawn = RichTable(box=box.SIMPLE_HEAD)
        drawn.add_column(text(self.table.header), no_wrap=True)
        for head in self.table.heads:
            drawn.add_column(text(head), justify="right")
        for row in self.table.rows:
            # styled parts, not a styled whole: that would underline the padding too
            cells = (Text().join(text(*part) for part in _parts(cell)) for cell in row.cells)
            drawn.add_row(text(row_name(row)), *cells)
        yield text(self.table.title, "bold")  # not the table's own title, which is wrapped to its width
        yield drawn
        yield from (text(note, "dim") for note in footnotes(self.table))


@dataclass(frozen=True)
class TerminalListing:
    """A listing with its title and notes as Rich shows it, in characters that the terminal has."""

    listing: Listing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def text(content: str, style: str = "") -> Text:
            return Text(encodable(content, options.encoding), style=style)

        drawn = RichTable(box=box.SIMPLE_HEAD)
        numeric = self.listing.numeric
        for head, right in zip(self.listing.heads, numeric):
            drawn.add_column(text(head), justify="right" if right else "left")
        for row in self.listing.rows:
            drawn.add_row(*(text(item(value, self.listing.decimals)) for value in row))
        yield text(self.listing.title, "bold")
        yield drawn
        yield from (text(note, "dim") for note in self.listing.notes)


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
