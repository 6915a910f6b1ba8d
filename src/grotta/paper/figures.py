"""The paper's figures over methods, gammas and settings."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from grotta import functional, streams
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.methods import method_class
from grotta.paper.printed import AVERAGE, gamma_name
from grotta.paper.recipe import Found, Recipe, Scope, compared, pick
from grotta.paper.tables import STATISTICS_ONLY, Variants, methods_of, variant_cells, variant_table
from grotta.report.figure import Figure, Panel, Series
from grotta.report.sections.content import Block, Line, Listing, zeta_figure
from grotta.report.sections.figures import curves, lines_panel, row_colors
from grotta.report.sections.tables import gamma_head, mean_error, provenance_notes, row_key
from grotta.report.table import Entry, Table, pivot

GAMMA_RANGE = (1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4)
CLASS_COUNTS = {"PACS": 7, "CIFAR-10": 10, "OfficeHome": 65, "CIFAR-100": 100, "DomainNet": 345, "ImageNet": 1000}
SHIFT_PERIODS, SHIFT_PERIOD = 100, 100
CAPACITIES = (100, 200, 500, 1000, 1500, 2000)
LAMBDAS = (0.001, 0.01, 0.1, 1.0)

OUTPUTS: Variants = {
    "(b)": ("grotta", STATISTICS_ONLY),
    "(b) + laplacian": ("grotta", {**STATISTICS_ONLY, "output": "laplacian"}),
    "(b) + bias-guided": ("grotta", {**STATISTICS_ONLY, "output": "bias_guided"}),
}
GROTTA: Variants = {"grotta": ("grotta", {})}
BANKS: Variants = {f"{capacity}": ("grotta", {"capacity": capacity}) for capacity in CAPACITIES}
PLAIN_LAMBDAS = (0.01, 0.1)  # λ_batch and λ_re of GRoTTA as it is


def _all_methods(scope: Scope) -> Variants:
    return {method: (method, {}) for method in scope.methods}


def _curves(scope: Scope, found: Found) -> list[Block]:
    results = pick(compared(scope), found)
    return [curves(results)] if results else []


def _zeta(scope: Scope, found: Found) -> list[Block]:
    results = pick(variant_cells(scope, GROTTA), found)
    return [zeta_figure(results, method=row_key(results[0].spec))] if results else []


def _gamma(scope: Scope, found: Found) -> list[Block]:
    rows = _all_methods(scope)
    title, printed = "error (%), mean over domains, against γ", f"main/{scope.dataset}"
    gammas = scope.gammas_or(GAMMA_RANGE)
    table = variant_table(scope, found, rows, name="t", title=title, header="Method", printed=printed, gammas=gammas)
    caption = "Figure 6b: the smaller γ, the more imbalanced and changing the labels; right, nearly uniform ones."
    return [_lines(table, "Error against γ", caption), table]


def _output(scope: Scope, found: Found) -> list[Block]:
    table = variant_table(
        scope, found, OUTPUTS, name="t", title="output adaptations on variant (b), error (%), mean over domains"
    )
    caption = "Figure 6d: the two output adaptations on the same balanced predictions, those of variant (b)."
    return [_lines(table, "Output adaptations", caption), table]


def _bank(scope: Scope, found: Found) -> list[Block]:
    title, header = "error (%), mean over domains, by the capacity of the bank", "Capacity"
    table = variant_table(scope, found, BANKS, name="t", title=title, header=header)
    points = {
        f"γ = {head}": [(float(row.label), row.cells[j].mean) for row in table.rows]
        for j, (column, head) in enumerate(zip(table.columns, table.heads))
        if column != AVERAGE
    }
    panel = _known_lines_panel(points, "Error by capacity", "images in the bank", log_x=False)
    caption = "Figure 7a: the error against the size of the bank; a larger bank holds older images."
    return [Figure("f", "Size of the bank", caption, panel, _behind(table)), table]


def _sensitivity_options(scope: Scope) -> dict[tuple[float, float], Mapping[str, float]]:
    """The options of GRoTTA by λ_batch and λ_re; none for its own pair: the same cell as in the main table."""
    own = not method_class("grotta").presets[scope.bases[0].preset]
    return {
        (batch, re): {} if own and (batch, re) == PLAIN_LAMBDAS else {"lambda_batch": batch, "lambda_re": re}
        for batch, re in product(LAMBDAS, LAMBDAS)
    }


def _sensitivity_cells(scope: Scope) -> list[CellSpec]:
    variants = _sensitivity_options(scope).values()
    return [spec for options in variants for spec in scope.cells("grotta", scope.hardest, options)]


def _sensitivity(scope: Scope, found: Found) -> list[Block]:
    entries = [
        Entry(f"{re:g}", f"{batch:g}", mean_error(result), result)
        for (batch, re), options in _sensitivity_options(scope).items()
        for result in pick(scope.cells("grotta", scope.hardest, options), found)
    ]
    table = pivot(
        entries,
        name="t",
        title=f"{scope.dataset}: error (%), mean over domains, by λ_re (row) and λ_batch {scope.at_hardest}",
        header="λ_re",
        columns=[f"{value:g}" for value in LAMBDAS],
        rows=[f"{value:g}" for value in LAMBDAS],
        average=False,
        rivals=False,
        head=lambda column: f"λ_batch {column}",
        notes=provenance_notes([entry.result for entry in entries], "") if entries else (),
    )
    points = {
        head.replace(" ", " = "): [(float(row.label), row.cells[j].mean) for row in table.rows]
        for j, head in enumerate(table.heads)
    }
    caption = "Figure 7b: orders of magnitude in the two weights of the loss; GRoTTA takes λ_batch 0.01 and λ_re 0.1."
    panel = _known_lines_panel(points, "Error by λ_re and λ_batch", "λ_re", log_x=True)
    return [Figure("f", "Sensitivity", caption, panel, _behind(table)), table]


class Shift(NamedTuple):
    """The label shift of a stream: ID and CD of its label distributions."""

    gamma: float
    imbalance: float
    change: float
    stream_hash: str


def shift_degrees(class_counts: Mapping[str, int], gammas: Sequence[float], seed: int = 0) -> dict[str, list[Shift]]:
    """The label shift of ptta streams over balanced images, by name; no network takes part.

    >>> [shift] = shift_degrees({"CIFAR-10": 10}, [1e-4])["CIFAR-10"]
    >>> round(shift.imbalance, 2), 0.8 < shift.change < 1
    (0.95, True)
    """
    degrees = {}
    for name, classes in class_counts.items():
        labels = np.arange(max(SHIFT_PERIODS * SHIFT_PERIOD, classes)) % classes
        made = [streams.ptta([labels], classes, gamma, period=SHIFT_PERIOD, seed=seed) for gamma in gammas]
        degrees[name] = [
            Shift(gamma, functional.imbalance_degree(p), functional.change_degree(p), stream.hash)
            for gamma, stream, p in zip(gammas, made, [stream.label_distributions for stream in made])
        ]
    return degrees


def _shift(scope: Scope, found: Found) -> list[Block]:
    degrees = shift_degrees(CLASS_COUNTS, GAMMA_RANGE)
    labels = {name: f"{name}, {CLASS_COUNTS[name]} classes" for name in degrees}
    colors = row_colors(list(labels.values()))
    series = []
    for name, points in degrees.items():
        x, y, sizes, _ = zip(*points)
        series.append(Series(labels[name], x, y, colors[labels[name]], "bubbles", sizes))
    panel = Panel("Imbalance and change", "γ", "imbalance degree ID", tuple(series), log_x=True, y_range=(0.0, 1.05))
    caption = (
        "Figure 6a: the imbalance degree of the label distributions, and as the size of the marks their change degree "
        f"CD; {SHIFT_PERIODS} periods for each number of classes. The range of ID is up to √(1 − 1/C)."
    )
    gammas = [gamma_head(gamma_name(gamma)) for gamma in GAMMA_RANGE]
    heads = ("Classes", *(f"γ = {gamma}" for gamma in gammas))
    imbalances: list[Line] = [
        (labels[name], *(point.imbalance for point in points)) for name, points in degrees.items()
    ]
    changes: list[Line] = [(labels[name], *(point.change for point in points)) for name, points in degrees.items()]
    hashes = [
        (labels[name], gamma, p.stream_hash) for name, points in degrees.items() for gamma, p in zip(gammas, points)
    ]
    notes = (
        "Command: grotta reproduce fig-shift. It gives the same numbers again, and needs no data and no network.",
        "Each number is of one ptta stream of seed 0; the streams are listed below by their hashes.",
    )
    return [
        Figure("f", "Label shift against γ", caption, (panel,)),
        Listing("id", "Imbalance degree (ID)", heads, tuple(imbalances), 3, notes),
        Listing("cd", "Change degree (CD)", heads, tuple(changes), 3, notes),
        Listing("streams", "Streams behind ID and CD", ("Classes", "γ", "Stream"), tuple(hashes)),
    ]


def _lines(table: Table, title: str, caption: str) -> Figure:
    """The rows of a table by gamma as lines."""
    points = {
        row.label: [(float(column), cell.mean) for column, cell in zip(table.columns, row.cells) if column != AVERAGE]
        for row in table.rows
    }
    return Figure("f", title, caption, _known_lines_panel(points, title, "γ", log_x=True), _behind(table))


def _known_lines_panel(
    points: Mapping[str, Sequence[tuple[float, float | None]]], title: str, x_label: str, *, log_x: bool
) -> tuple[Panel, ...]:
    known = {name: [(x, y) for x, y in line if y is not None] for name, line in points.items()}
    known = {name: line for name, line in known.items() if line}
    return (lines_panel(known, title, x_label, log_x=log_x),) if known else ()


def _behind(table: Table) -> tuple[CellResult, ...]:
    return tuple(result for row in table.rows for cell in row.cells for result in cell.results)


FIGURES = (
    Recipe("fig-curves", "Accumulated accuracy", "Figure 5: how each method fares over time.", compared, _curves),
    Recipe(
        "fig-shift",
        "Label shift against γ",
        "What γ does to the labels of a stream.",
        lambda scope: [],
        _shift,
        single=("seeds",),
        fixed=(
            *("dataset", "methods", "gammas", "domains", "full", "model", "preset"),
            *("stream", "period", "batch_size", "image_size"),
        ),
    ),
    Recipe(
        "fig-gamma",
        "Error against γ",
        "From nearly uniform labels to one class at a time.",
        lambda scope: compared(scope, scope.gammas_or(GAMMA_RANGE)),
        _gamma,
        gammas=GAMMA_RANGE,
    ),
    Recipe(
        "fig-zeta",
        "Imbalance score",
        "Figure 6c: the score by which GRoTTA trusts the batch's structure; of several runs, the one with the smallest "
        "seeds.",
        lambda scope: variant_cells(scope, GROTTA),
        _zeta,
        methods=methods_of(GROTTA),
    ),
    Recipe(
        "fig-output",
        "Output adaptations",
        "Bias-guided output adaptation against LAME's.",
        lambda scope: variant_cells(scope, OUTPUTS),
        _output,
        methods=methods_of(OUTPUTS),
    ),
    Recipe(
        "fig-bank",
        "Size of the bank",
        "How many images to keep.",
        lambda scope: variant_cells(scope, BANKS),
        _bank,
        methods=methods_of(BANKS),
    ),
    Recipe(
        "fig-sensitivity",
        "Sensitivity to the loss weights",
        "How much the two weights of the loss matter.",
        _sensitivity_cells,
        _sensitivity,
        methods=methods_of(GROTTA),
        single=("gammas",),
    ),
)
