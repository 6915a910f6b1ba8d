"""Tables as HTML: every number is a link to the cells behind it, and a column's head sorts by it."""

from html import escape

from grotta.paper.printed import AVERAGE
from grotta.report.render.markdown import footnotes, gain
from grotta.report.table import DECIMALS, Cell, Row, Table

_OPEN = {"best": '<strong title="best">', "second": '<u title="second best">', "": ""}
_CLOSE = {"best": "</strong>", "second": "</u>", "": ""}
_MANY_COLUMNS = 8  # more are set closer, so that the average of fifteen domains is seen without scrolling


def to_html(table: Table) -> str:
    """The table as a ``<section>`` with its title and notes."""
    rows = [row for row in table.rows if row.label != AVERAGE]
    totals = [row for row in table.rows if row.label == AVERAGE]
    foot = f"<tfoot>{''.join(map(_row, totals))}</tfoot>" if totals else ""
    kinds = {"dense": len(table.columns) > _MANY_COLUMNS, "summed": table.columns[-1] == AVERAGE}
    grid = (
        f'<table class="{" ".join(kind for kind, is_so in kinds.items() if is_so)}">{_hidden_caption(table.title)}'
        f"{head_html((table.header, *table.heads))}<tbody>{''.join(map(_row, rows))}</tbody>{foot}</table>"
    )
    return framed(table.name, table.title, grid, footnotes(table, "Under each number"))


def framed(name: str, title: str, grid: str, notes: list[str]) -> str:
    """A table that scrolls sideways where it is too wide, under its title and above its notes."""
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<section class="block" id="{escape(name)}" aria-labelledby="{escape(name)}-h">'
        f'<h3 id="{escape(name)}-h">{escape(title)}</h3>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{escape(name)}-h">{grid}</div>'
        f"{f'<ul class=notes>{listed}</ul>' if notes else ''}</section>"
    )


def head_html(heads: tuple[str, ...]) -> str:
    """The head of a table; its buttons sort, once the page's script has switched them on."""
    cells = "".join(f'<th scope="col"><button type="button" disabled>{escape(head)}</button></th>' for head in heads)
    return f"<thead><tr>{cells}</tr></thead>"


def _hidden_caption(title: str) -> str:
    return f'<caption class="hidden">{escape(title)}</caption>'


def _row(row: Row) -> str:
    mark = f' <abbr title="{escape(row.mark)}">†</abbr>' if row.mark else ""
    name = f'<th scope="row" data-value="{escape(row.label)}"><span class="name">{escape(row.label)}{mark}</span></th>'
    return f"<tr>{name}{''.join(map(_cell, row.cells))}</tr>"


def _cell(cell: Cell) -> str:
    if cell.mean is None:
        lacks = "" if cell.complete else '–<abbr title="no number in every column, so no average">*</abbr>'
        return f'<td data-value="">{lacks}{_beside(cell)}</td>'
    ids = [result.spec.id for result in cell.results]
    spread = "" if cell.std is None else f" <small>± {cell.std:.{DECIMALS}f}</small>"
    incomplete = "" if cell.complete else '<abbr title="not on all the streams of its column">*</abbr>'
    lead = "" if cell.gain is None else f'<span class="gain" title="{_gain_title(cell)}">{gain(cell)}</span>'
    link = f'<a href="#cell-{ids[0]}" data-cells="{" ".join(ids)}">{cell.mean:.{DECIMALS}f}</a>'
    number = f"{_OPEN[cell.rank]}{link}{_CLOSE[cell.rank]}{spread}{incomplete}{lead}{_beside(cell)}"
    return f'<td data-value="{cell.mean!r}">{number}</td>'


def _beside(cell: Cell) -> str:
    if cell.paper is None:
        return ""
    lead = "" if cell.paper_gain is None else f" ↓{cell.paper_gain:.1f}{_doubt(cell.paper_gain_note)}"
    difference = cell.difference
    ours = "" if difference is None else f" ({difference:+.1f})".replace("-", "−")
    return f'<span class="beside">paper {cell.paper:.1f}{_doubt(cell.paper_note)}{lead}{ours}</span>'


def _gain_title(cell: Cell) -> str:
    return "gain over the second best" + ("" if cell.gain_of_all else " of the rows that are ranked here, not of all")


def _doubt(note: str) -> str:
    return f'<abbr title="{escape(note)}">?</abbr>' if note else ""
