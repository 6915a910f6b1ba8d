"""What several recipes share: variants of methods as rows, by gamma, in a table or as lines."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.recipe import Found, Recipe, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.figure import Figure, Panel, Scale
from grotta.report.labels import data_name, gamma_head, gamma_name, mean_error, row_label
from grotta.report.printed import AVERAGE, NOTHING_PRINTED, Printed
from grotta.report.sections.figures import lines_panel
from grotta.report.sections.notes import provenance_notes
from grotta.report.table import Entry, Table, pivot

Variants = Mapping[str, tuple[str, Mapping[str, Any]]]  # row -> method and options

STATISTICS_ONLY: Mapping[str, Any] = {"train": False, "output": None}


def methods_of(variants: Variants) -> tuple[str, ...]:
    """The methods of variants, each once."""
    return tuple(dict.fromkeys(method for method, _ in variants.values()))


def variant_cells(scope: Scope, variants: Variants, gammas: Sequence[float] | None = None) -> list[CellSpec]:
    """Every variant at every gamma."""
    return [
        spec
        for gamma in gammas or scope.gammas
        for method, options in variants.values()
        for spec in scope.cells(method, gamma, options)
    ]


def variant_entries(scope: Scope, found: Found, variants: Variants, gammas: Sequence[float]) -> list[Entry]:
    """The errors of variants by gamma."""
    return [
        Entry(row, gamma_name(gamma), mean_error(result), result)
        for row, (method, options) in variants.items()
        for gamma in gammas
        for result in pick(scope.cells(method, gamma, options), found)
    ]


def variant_table(
    scope: Scope,
    found: Found,
    variants: Variants,
    *,
    title: str,
    name: str = "t",
    header: str = "Variant",
    labels: Mapping[str, str] | None = None,
    beside: str = "",
    printed: Printed = NOTHING_PRINTED,
    gammas: Sequence[float] | None = None,
) -> Table:
    """The errors of variants by gamma, next to the table ``beside`` of the ``printed`` ones."""
    gammas = gammas or scope.gammas
    entries = variant_entries(scope, found, variants, gammas)
    theirs = printed.tables.get(beside)
    results = [entry.result for entry in entries]
    return pivot(
        entries,
        name=name,
        title=f"{data_name(scope.dataset)}: {title}",
        header=header,
        columns=[gamma_name(gamma) for gamma in gammas],
        rows=list(variants),
        paper=theirs,
        label=lambda row: (labels[row], "") if labels and row in labels else row_label(row),
        head=gamma_head,
        notes=provenance_notes(results, printed, theirs.dataset if theirs else "") if results else (),
    )


def variant_recipe(
    variants: Variants, *, table: str, figure: Callable[[Table], Figure] | None = None, **given: Any
) -> Recipe:
    """A recipe for the table of that title, with one row per variant and one column per gamma, and a figure of it.

    ``given`` are fields of the recipe, and of the table: ``header``, ``labels`` and ``beside``.
    """
    of_table = {name: given.pop(name) for name in ("header", "labels", "beside") if name in given}

    def blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
        made = variant_table(scope, found, variants, title=table, printed=printed, **of_table)
        return [made] if figure is None else [figure(made), made]

    cells = partial(variant_cells, variants=variants)
    return Recipe(cells=cells, blocks=blocks, methods=methods_of(variants), **given)


def lines_figure(table: Table, title: str, caption: str) -> Figure:
    """The rows of a table by gamma, as lines."""
    points = {
        row.label: [(float(column), cell.mean) for column, cell in zip(table.columns, row.cells) if column != AVERAGE]
        for row in table.rows
    }
    return Figure("f", title, caption, known_lines(points, title, "γ", x_scale="log"), behind(table))


def known_lines(
    points: Mapping[str, Sequence[tuple[float, float | None]]], title: str, x_label: str, *, x_scale: Scale
) -> tuple[Panel, ...]:
    """A panel with one line per name through the points that are known; none if there are none."""
    known = {name: [(x, y) for x, y in line if y is not None] for name, line in points.items()}
    known = {name: line for name, line in known.items() if line}
    return (lines_panel(known, title, x_label, x_scale=x_scale),) if known else ()


def behind(table: Table) -> tuple[CellResult, ...]:
    """The cells behind a table."""
    return tuple(result for row in table.rows for cell in row.cells for result in cell.results)
