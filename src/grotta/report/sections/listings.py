"""What is behind the numbers of a report: time and memory, data, networks and versions."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from grotta.bench.store.results import CellResult
from grotta.report.document import Line, Listing
from grotta.report.labels import data_name, network_name, plural, row_key, row_keys, row_label
from grotta.report.printed import NOTHING_PRINTED, Printed
from grotta.report.sections.setups import by_setup, setup_names


def speed_listing(results: Sequence[CellResult]) -> Listing | None:
    """Time and memory by row, if any are known; they depend on the machine that ran the cells."""
    timed = [result for result in results if math.isfinite(result.seconds)]
    rows = []
    names = setup_names(results)
    for setup, group in by_setup(timed).items():
        for key in row_keys(group):
            cells = [result for result in group if row_key(result.spec) == key]
            rows.append(
                (
                    names[setup],
                    row_label(key)[0],
                    median(result.images_per_second for result in cells),
                    max(result.peak_memory_mb for result in cells),
                    sum(result.seconds for result in cells),
                )
            )
    heads = ("Data", "Method", "Images per second, median", "Peak memory, MB", "Seconds, all cells")
    note = "Measured on the machine that ran the cells, possibly several at once; not part of any result."
    return Listing("speed", "Time and memory", heads, tuple(rows), 0, (note,)) if rows else None


def unlabelled_listing(results: Sequence[CellResult], name: str = "unlabelled") -> Listing | None:
    """What was measured without labels, a column per method; None if all results have labels."""
    known = [result for result in results if result.measures]
    if not known:
        return None
    columns = [[r.measures for r in known if row_key(r.spec) == key] for key in row_keys(known)]
    measures = list(dict.fromkeys(measure for result in known for measure in result.measures))
    classes = [measure for measure in measures if measure not in _MEASURES]
    classes.sort(key=lambda measure: -max(_mean(runs, measure) or 0.0 for runs in columns))
    shown, others = (classes, []) if len(classes) <= MOST_CLASSES else (classes[:MOST_CLASSES], classes[MOST_CLASSES:])
    rows: list[Line] = [
        (words, *(_mean(runs, measure, 1.0 if measure == "entropy" else 100.0) for runs in columns))
        for measure, words in _MEASURES.items()
        if measure in measures
    ]
    rows += [
        (f"Predicted {measure.removeprefix('class ')}, %", *(_mean(runs, measure, 100.0) for runs in columns))
        for measure in sorted(shown, key=measures.index)
    ]
    if others:
        rest = (sum(_mean(runs, measure, 100.0) or 0.0 for measure in others) for runs in columns)
        rows.append((f"Predicted another of {plural(len(others), 'class', 'classes')}, %", *rest))
    heads = ("Measure", *(row_label(key)[0] for key in row_keys(known)))
    note = (
        "The stream has no labels, so its error is unknown. High agreement with the source network means that little "
        "has changed, low entropy and high confidence that the answers are sure; none of these mean they are right."
    )
    return Listing(name, "What can be measured without labels", heads, tuple(rows), 2, (note,))


MOST_CLASSES = 20  # that are listed one by one
_MEASURES = {
    "agreement": "Agreement with the source, %",
    "entropy": "Entropy, nats",
    "confidence": "Mean confidence, %",
    "estimated_accuracy": "Accuracy by its own estimate, %",
}


def _mean(runs: Sequence[Mapping[str, float]], measure: str, unit: float = 1.0) -> float | None:
    """The mean of a measure over the runs of a row; None if one of them lacks it."""
    values = [run.get(measure) for run in runs]
    return None if None in values else unit * fmean(value for value in values if value is not None)


def used_listing(results: Sequence[CellResult], printed: Printed = NOTHING_PRINTED) -> Listing:
    """Which data, network and software are behind the numbers, and which behind the published ones."""
    rows = []
    for setup, group in by_setup(results).items():
        weights = ", ".join(sorted({result.model_fingerprint[:12] for result in group}))
        data = ", ".join(sorted({result.provenance for result in group}))
        theirs = [part[setup.dataset] for part in (printed.data, printed.networks) if setup.dataset in part]
        rows.append((data_name(setup.dataset), data, network_name(setup.model), weights, "; ".join(theirs) or None))
    heads = ("Data", "Provenance", "Network", "Fingerprint of its weights", "The paper used")
    versions = sorted({f"{name} {version}" for result in results for name, version in result.versions.items()})
    note = f"Software: {', '.join(versions)}." if versions else "No cell has finished."
    return Listing("used", "What was used", heads, tuple(dict.fromkeys(rows)), notes=(note,))
