"""What is behind the numbers of a report: time and memory, data, networks and versions."""

import math
from collections.abc import Sequence
from statistics import median

from grotta.bench.store.results import CellResult
from grotta.report.document import Listing
from grotta.report.labels import data_name, row_key, row_keys, row_label
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
    note = "Measured on the machine that ran the cells, several at once if it was asked to; not part of any result."
    return Listing("speed", "Time and memory", heads, tuple(rows), 0, (note,)) if rows else None


def unlabelled_listing(results: Sequence[CellResult], name: str = "unlabelled") -> Listing | None:
    """What was measured without labels, by row; None if all results have labels."""
    known = [result for result in results if result.measures]
    if not known:
        return None
    order = {key: place for place, key in enumerate(row_keys(known))}
    heads = list(dict.fromkeys(measure for result in known for measure in result.measures))
    rows = [
        (
            row_label(row_key(result.spec))[0],
            *(_shown_measure(measure, result.measures.get(measure)) for measure in heads),
        )
        for result in sorted(known, key=lambda result: (order[row_key(result.spec)], result.spec.seed))
    ]
    named = ("Method", *(_MEASURES.get(head, f"Predicted {head.removeprefix('class ')}, %") for head in heads))
    note = (
        "The stream has no labels, so no error can be given. High agreement with the source network means that little "
        "was changed, low entropy that the answers are sure; neither says that they are right."
    )
    return Listing(name, "What can be measured without labels", named, tuple(rows), 2, (note,))


_MEASURES = {
    "agreement": "Agreement with the source, %",
    "entropy": "Entropy, nats",
    "estimated_accuracy": "Accuracy by its own estimate, %",
}


def _shown_measure(measure: str, value: float | None) -> float | None:
    return value if value is None or measure == "entropy" else 100.0 * value


def used_listing(results: Sequence[CellResult], printed: Printed = NOTHING_PRINTED) -> Listing:
    """Which data, network and software are behind the numbers, and which behind the published ones."""
    rows = []
    for setup, group in by_setup(results).items():
        weights = ", ".join(sorted({result.model_fingerprint[:12] for result in group}))
        data = ", ".join(sorted({result.provenance for result in group}))
        theirs = [part[setup.dataset] for part in (printed.data, printed.networks) if setup.dataset in part]
        rows.append((data_name(setup.dataset), data, setup.model, weights, "; ".join(theirs) or None))
    heads = ("Data", "Provenance", "Network", "Fingerprint of its weights", "The paper used")
    versions = sorted({f"{name} {version}" for result in results for name, version in result.versions.items()})
    note = f"Software: {', '.join(versions)}." if versions else "No cell has finished."
    return Listing("used", "What was used", heads, tuple(dict.fromkeys(rows)), notes=(note,))
