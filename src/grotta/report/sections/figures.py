"""The figures of a benchmark, from finished cells."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from grotta.bench.store.records import NO_TIME
from grotta.bench.store.results import CellResult
from grotta.report.figure import PALETTE, Figure, Kind, Panel, Scale, Series, ends_alike, mean_filtered, thinned
from grotta.report.labels import gammas, label_shift, method_colors, row_key, row_keys, row_label

SEEN, TAKEN = "images seen", "time of the image"
UNLABELLED_WINDOW = 9  # batches
ZETA_WINDOW = 50  # batches; the paper filters too, but does not say how wide
_MOST_DOTS = 4000
_OTHERS = (8, 3, 5, 4, 7, 6, 2, 1, 9, 0)  # colours for what is not a method, those farthest apart first

Named = Mapping[str, CellResult]


def first_runs(results: Sequence[CellResult]) -> dict[str, CellResult]:
    """The result with the smallest seeds of each row, under the row's name, rows in the order of tables."""
    order = {key: place for place, key in enumerate(row_keys(results))}
    ordered = sorted(results, key=lambda r: (order[row_key(r.spec)], r.spec.stream_seed, r.spec.seed))
    first: dict[str, CellResult] = {}
    for result in ordered:
        first.setdefault(row_label(row_key(result.spec))[0], result)
    return first


def row_colors(labels: Sequence[str]) -> dict[str, int]:
    """A colour for each label: a method has the same one in every figure, other rows take those left, in turn."""
    own = method_colors()
    used = {own[label] % PALETTE for label in labels if label in own}
    free = [color for color in _OTHERS if color not in used]
    # when all are taken they repeat, one palette higher: drawn with other dashes
    free += [PALETTE * (1 + turn) + color for turn in range(1 + len(labels) // PALETTE) for color in _OTHERS]
    others = dict.fromkeys(label for label in labels if label not in own)
    return {**{label: own[label] for label in labels if label in own}, **dict(zip(others, free))}


def accuracy_panel(named: Named, title: str) -> Panel:
    """The accuracy over all images up to each batch."""
    return _over_time(named, title, "accumulated accuracy (%)", lambda r: 100.0 - r.accumulated_error())


def zeta_panel(named: Named, title: str) -> Panel:
    """The imbalance score of each batch, mean-filtered."""
    return _over_time(named, title, "ζ, mean-filtered", lambda r: mean_filtered(r.records["zeta"], ZETA_WINDOW))


def curves(results: Sequence[CellResult], name: str = "curves") -> Figure:
    """The accumulated accuracy of all rows, one panel per gamma."""
    by_gamma = {gamma: first_runs([r for r in results if r.spec.gamma == gamma]) for gamma in gammas(results)}
    panels = tuple(
        accuracy_panel(named, label_shift(results[0].spec.stream, gamma)) for gamma, named in by_gamma.items()
    )
    caption = "The share of correct answers among all images so far; of several runs, the one with the smallest seeds."
    return Figure(
        name=name,
        title="Accumulated accuracy over time",
        caption=" ".join(filter(None, (caption, boundaries_note(panels), ends_alike(panels)))),
        panels=panels,
        results=tuple(result for named in by_gamma.values() for result in named.values()),
    )


def unlabelled_figure(results: Sequence[CellResult], name: str = "unlabelled-curves") -> Figure:
    """What can be measured without labels, over time: agreement with the source network, and entropy."""
    named = first_runs(results)
    panels = (
        _over_time(
            named, "Agreement with the source network", "%, mean-filtered", partial(_filtered, "agreement", 100.0)
        ),
        _over_time(named, "Entropy", "nats, mean-filtered", partial(_filtered, "entropy", 1.0)),
    )
    caption = (
        f"Each point is the mean of {UNLABELLED_WINDOW} batches. Where agreement falls, the method departs from "
        "the network it started from; where entropy rises, it is less sure."
    )
    note = " ".join(filter(None, (caption, boundaries_note(panels))))
    return Figure(name, "Without labels, over time", note, panels, tuple(named.values()))


def _filtered(column: str, unit: float, result: CellResult) -> np.ndarray:
    return unit * mean_filtered(result.records[column], UNLABELLED_WINDOW)


def zeta_figure(results: Sequence[CellResult], name: str = "zeta", method: str = "grotta") -> Figure:
    """The imbalance score over time, one line per gamma."""
    named: dict[str, CellResult] = {}
    for gamma in gammas(results):
        first = first_runs([r for r in results if r.spec.gamma == gamma and row_key(r.spec) == method])
        named |= {label_shift(result.spec.stream, gamma): result for result in first.values()}
    panels = (zeta_panel(named, "Imbalance score ζ"),) if named else ()
    caption = (
        f"ζ of each batch of {row_label(method)[0]}'s predictions, averaged over the neighbouring batches: the "
        "smaller γ, the more one-sided the batches."
    )
    return Figure(
        name=name,
        title="Imbalance score over time",
        caption=" ".join(filter(None, (caption, boundaries_note(panels)))),
        panels=panels,
        results=tuple(named.values()),
    )


def boundaries_note(panels: Sequence[Panel]) -> str:
    """What the vertical lines of some panels are, if there are any."""
    return "Vertical lines: a new domain begins." if any(len(panel.sections) > 1 for panel in panels) else ""


def class_panel(result: CellResult, which: str, title: str, color: int) -> Panel:
    """The class of each image over time: its ``labels``, or its ``predictions``."""
    classes = result.records[which]
    x, y = thinned(np.arange(len(classes)), classes, _MOST_DOTS)
    series = Series("label" if which == "labels" else "prediction", x, y, color, "dots")
    return Panel(title, SEEN, "class", (series,), y_range=(-0.5, result.classes - 0.5))


def lines_panel(
    points: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    x_label: str,
    y_label: str = "error (%)",
    *,
    x_scale: Scale = "log",
    kind: Kind = "marked",
) -> Panel:
    """One line per name through its (x, y) points."""
    colors = row_colors(list(points))
    series = [
        Series(name, tuple(x for x, _ in line), tuple(y for _, y in line), colors[name], kind)
        for name, line in points.items()
    ]
    return Panel(title, x_label, y_label, tuple(series), x_scale=x_scale)


def _over_time(named: Named, title: str, y_label: str, values: Callable[[CellResult], np.ndarray]) -> Panel:
    colors = row_colors(list(named))
    moments = {label: batch_times(result) for label, result in named.items()}
    timed = bool(named) and all(len(times) for times in moments.values())
    series = []
    for label, result in named.items():
        x, y = thinned(moments[label] if timed else np.cumsum(result.records["size"]), values(result))
        series.append(Series(label, x, y, colors[label]))
    sections = _domain_starts(next(iter(named.values())), timed) if named else ()
    scale: Scale = "time" if timed else "linear"
    return Panel(title, TAKEN if timed else SEEN, y_label, tuple(series), sections=sections, x_scale=scale)


def batch_times(result: CellResult) -> np.ndarray:
    """When the first image of each batch was taken (batches,), in seconds; empty unless all are known and in order."""
    times = result.records.get("time")
    if times is None:
        return np.empty(0)
    first = times[np.cumsum(result.records["size"]) - result.records["size"]]
    known = len(first) and first.min() != NO_TIME and (np.diff(first) >= 0).all() and first[-1] > first[0]
    return first.astype(float) if known else np.empty(0)


def _domain_starts(result: CellResult, timed: bool) -> tuple[tuple[float, str], ...]:
    seen = batch_times(result) if timed else np.cumsum(result.records["size"]) - result.records["size"]
    domain = result.records["domain"]
    return tuple(
        (float(seen[domain == place].min()), name.replace("_", " "))
        for place, name in enumerate(result.spec.domains)
        if (domain == place).any()
    )
