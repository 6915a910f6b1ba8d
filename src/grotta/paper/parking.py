"""Beyond the paper: three parking cameras in recorded order, which nobody drew.

A network is trained on one camera and then sees the others, and other weather, as they were filmed. What drifts is the
light, the camera and the label mix: car parks are empty at dawn and full at noon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from grotta.bench.store import records as rec
from grotta.bench.store.results import CellResult
from grotta.methods import list_methods
from grotta.methods.registry import PAPER_METHODS
from grotta.paper.network import SourceNetwork
from grotta.paper.recipe import Found, Recipe, compared, pick
from grotta.paper.scope import Scope
from grotta.report.document import Block
from grotta.report.figure import Figure, Panel
from grotta.report.labels import row_key, row_keys, row_label
from grotta.report.printed import Printed
from grotta.report.sections.figures import first_runs, lines_panel
from grotta.report.sections.notes import provenance_notes
from grotta.report.table import Entry, pivot

RECOMMENDED = "grotta+"
COSTLY = "cotta"  # 44 forwards a step: as long as all others together, so only when it is asked for
OCCUPIED = 1  # the second of the two classes
BEST = 3
FEWEST = 100  # images in an hour of a day, or fewer say nothing
ALL = "all images"

Values = npt.NDArray[Any]


def _choices(domains: Sequence[str]) -> Mapping[str, Any]:
    methods = [name for name in (*PAPER_METHODS, RECOMMENDED) if name in list_methods() and name != COSTLY]
    return {
        "dataset": "pklot",
        "domains": list(domains),
        "stream": "recorded",
        "image_size": 32,
        "methods": methods,
        "images": 0,
    }


def by_hour(result: CellResult, domain: int, values: Values) -> list[tuple[float, float]]:
    """The mean of ``values`` (images,), in per cent, for each hour of the day with enough images of a domain."""
    times = result.records.get("time")
    if times is None:
        return []
    here = np.repeat(result.records["domain"], result.records["size"]) == domain
    hours = times // 3600 % 24
    here &= times != rec.NO_TIME
    found = []
    for hour in range(24):
        taken = here & (hours == hour)
        if taken.sum() >= FEWEST:
            found.append((float(hour), 100.0 * float(values[taken].mean())))
    return found


def _shown(results: Sequence[CellResult]) -> list[CellResult]:
    """The source network and the best other rows, by the error on all images, in the order of tables."""
    ranked = sorted((r for r in results if r.spec.method != "source"), key=lambda r: r.error)
    best = {id(result) for result in ranked[:BEST]}
    return [result for result in results if result.spec.method == "source" or id(result) in best]


def _hours(results: Sequence[CellResult]) -> list[Block]:
    shown = _shown(list(first_runs(results).values()))
    if not shown:
        return []
    panels: list[Panel] = []
    for place, camera in enumerate(shown[0].spec.domains):
        errors = {
            row_label(row_key(result.spec))[0]: by_hour(result, place, rec.wrong(result.records)) for result in shown
        }
        mix = {"occupied spaces": by_hour(shown[0], place, shown[0].labels == OCCUPIED)}
        ticks = tuple((float(hour), f"{hour}:00") for hour in range(0, 24, 3))
        panels += [
            replace(lines_panel(errors, f"{camera}: error", "hour of the day", x_scale="linear"), x_ticks=ticks),
            replace(
                lines_panel(mix, f"{camera}: label mix", "hour of the day", "occupied (%)", x_scale="linear"),
                x_ticks=ticks,
                y_range=(0.0, 100.0),
            ),
        ]
    caption = (
        f"For each camera, the error of the source network and of the {BEST} best methods in each hour of the day, "
        f"over all its days, and beside it the share of occupied spaces. Hours with fewer than {FEWEST} images are "
        "left out."
    )
    return [Figure("hours", "Error and label mix by hour", caption, tuple(panels), tuple(shown))]


def _blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    results = pick(compared(scope), found)
    if not results:
        return []
    entries = [Entry(row_key(r.spec), domain, error, r) for r in results for domain, error in r.domain_errors.items()]
    entries += [Entry(row_key(r.spec), ALL, r.error, r) for r in results]
    table = pivot(
        entries,
        name="t",
        title="Parking cameras in recorded order: error (%) by camera",
        columns=[*scope.bases[0].domains, ALL],
        average=False,
        rows=row_keys(results),
        label=row_label,
        notes=provenance_notes(results, printed, ""),
    )
    return [table, *_hours(results)]


def _recipe(domains: Sequence[str], network: SourceNetwork, **words: Any) -> Recipe:
    return Recipe(
        **words,
        cells=compared,
        blocks=_blocks,
        fixed=("gammas", "full"),
        choices=partial(_choices, domains),
        network=network,
        in_all=False,
    )


PARKING = _recipe(
    ("pucpr:cloudy+shaded", "ufpr04", "ufpr05"),
    SourceNetwork("pklot-pucpr-sunny", "pklot", ("pucpr-sunny",), "resnet20", 32, epochs=15),
    name="parking",
    title="Parking cameras, trained on one of them in the sun",
    about="Beyond the paper: a network trained on one camera in the sun sees its other weather and two other cameras, "
    "in recorded order.",
)
ALL_WEATHER = _recipe(
    ("ufpr04", "ufpr05"),
    SourceNetwork("pklot-pucpr", "pklot", ("pucpr-cloudy", "pucpr-shaded", "pucpr-sunny"), "resnet20", 32, epochs=6),
    name="parking-all-weather",
    title="Parking cameras, trained on all weather of one of them",
    about="Beyond the paper: a network trained on all weather of one camera sees two other cameras, in recorded order.",
)
