"""Figure 6a: what gamma does to the labels of a stream. It needs no cells."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from grotta import functional, streams
from grotta.paper.figures.gamma import GAMMA_RANGE
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.report.document import Block, Line, Listing
from grotta.report.figure import Figure, Panel, Series
from grotta.report.labels import gamma_head, gamma_name
from grotta.report.printed import Printed
from grotta.report.sections.figures import row_colors

CLASS_COUNTS = {"PACS": 7, "CIFAR-10": 10, "OfficeHome": 65, "CIFAR-100": 100, "DomainNet": 345, "ImageNet": 1000}
PERIODS, PERIOD = 100, 100


class Shift(NamedTuple):
    """The label shift of a stream: ID and CD of its label distributions."""

    gamma: float
    imbalance: float
    change: float
    stream_hash: str


def shift_degrees(class_counts: Mapping[str, int], gammas: Sequence[float], seed: int = 0) -> dict[str, list[Shift]]:
    """The label shift of ptta streams over balanced images, by name; no network is needed.

    >>> [shift] = shift_degrees({"CIFAR-10": 10}, [1e-4])["CIFAR-10"]
    >>> round(shift.imbalance, 2), 0.8 < shift.change < 1
    (0.95, True)
    """
    degrees = {}
    for name, classes in class_counts.items():
        labels = np.arange(max(PERIODS * PERIOD, classes)) % classes
        made = [streams.ptta([labels], classes, gamma, period=PERIOD, seed=seed) for gamma in gammas]
        degrees[name] = [
            Shift(gamma, functional.imbalance_degree(p), functional.change_degree(p), stream.hash)
            for gamma, stream, p in zip(gammas, made, [stream.label_distributions for stream in made])
        ]
    return degrees


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    degrees = shift_degrees(CLASS_COUNTS, GAMMA_RANGE)
    labels = {name: f"{name}, {CLASS_COUNTS[name]} classes" for name in degrees}
    colors = row_colors(list(labels.values()))
    series = []
    for name, points in degrees.items():
        x, y, sizes, _ = zip(*points)
        series.append(Series(labels[name], x, y, colors[labels[name]], "bubbles", sizes))
    panel = Panel("Imbalance and change", "γ", "imbalance degree ID", tuple(series), x_scale="log", y_range=(0.0, 1.05))
    caption = (
        "Figure 6a: the imbalance degree of the label distributions, and as the size of the marks their change degree "
        f"CD; {PERIODS} periods for each number of classes. ID is at most √(1 − 1/C)."
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
        "Command: grotta reproduce fig-shift. It reproduces the numbers, and needs no data and no network.",
        "Each number is of one ptta stream of seed 0; the streams are listed below by their hashes.",
    )
    return [
        Figure("f", "Label shift against γ", caption, (panel,)),
        Listing("id", "Imbalance degree (ID)", heads, tuple(imbalances), 3, notes),
        Listing("cd", "Change degree (CD)", heads, tuple(changes), 3, notes),
        Listing("streams", "Streams behind ID and CD", ("Classes", "γ", "Stream"), tuple(hashes)),
    ]


RECIPE = Recipe(
    name="fig-shift",
    title="Label shift against γ",
    about="What γ does to the labels of a stream.",
    cells=lambda scope: [],
    blocks=_blocks,
    single=("seeds",),
    fixed=(
        *("dataset", "methods", "gammas", "domains", "full", "model", "preset"),
        *("stream", "period", "batch_size", "image_size", "images"),
    ),
)
