"""Write docs/parking.md and its pictures from a run of `grotta reproduce parking` and `parking-all-weather`.

    make parking            # both recipes, then this script
    python scripts/parking_page.py runs/parking

Nothing in the page is typed by hand but the words: every number comes from the finished cells and from the data.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import grotta.data
from grotta import _files
from grotta.bench.store.results import CellResult, load_results
from grotta.methods import method_class
from grotta.methods.registry import PAPER_METHODS
from grotta.paper.parking import ALL_WEATHER, COSTLY, FEWEST, OCCUPIED, PARKING, RECOMMENDED
from grotta.paper.recipe import by_id, recipe_section
from grotta.paper.recipes import all_recipes
from grotta.paper.saved import saved_recipes
from grotta.report.document import Section
from grotta.report.figure import Figure
from grotta.report.labels import method_title
from grotta.report.render.markdown import to_markdown
from grotta.report.render.svg import figure_svg
from grotta.report.sections.figures import lines_panel
from grotta.report.table import Table

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = "parking"
METHODS = [name for name in (*PAPER_METHODS, RECOMMENDED) if name != COSTLY]
HARM = 0.5  # points: less is no harm
EVERY = 10  # pictures: light is measured on one of so many


def drift() -> Figure:
    """How bright the pictures are, and how full the car parks, by hour of the day and camera."""
    data = grotta.data.load("pklot", recorded=True, image_size=32)
    light: dict[str, list[tuple[float, float]]] = {}
    mix: dict[str, list[tuple[float, float]]] = {}
    for camera in data.domains:
        hours = data.moments[camera].times.astype("datetime64[h]").astype(int) % 24
        labels = data.labels(camera)
        seen = np.arange(0, len(labels), EVERY)
        levels = data.images(camera, seen).float().mean(dim=(1, 2, 3)).numpy()
        kept = [hour for hour in range(24) if (hours == hour).sum() >= FEWEST and (hours[seen] == hour).any()]
        light[camera] = [(float(hour), float(levels[hours[seen] == hour].mean())) for hour in kept]
        mix[camera] = [(float(hour), 100 * float((labels[hours == hour] == OCCUPIED).mean())) for hour in kept]
    ticks = tuple((float(hour), f"{hour}:00") for hour in range(0, 24, 3))
    panels = (
        lines_panel(light, "Light", "hour of the day", "mean grey value, 0 to 255", x_scale="linear"),
        lines_panel(mix, "Label mix", "hour of the day", "occupied spaces (%)", x_scale="linear"),
    )
    caption = f"What drifts over the day, camera by camera; hours with fewer than {FEWEST} pictures are left out."
    return Figure("drift", "What drifts", caption, tuple(replace(panel, x_ticks=ticks) for panel in panels))


def sentence(results: list[CellResult]) -> str:
    """Who is best and what the source network does, in words."""
    source = next(result for result in results if result.spec.method == "source")
    others = sorted((result for result in results if result is not source), key=lambda result: result.error)
    alone = (
        f"{recommended_first(results)}The source network alone gets {source.error:.1f} % of {source.images:,} pictures "
        "wrong"
    )
    if not others:
        return f"{alone}."
    best = others[0]
    title = method_title(best.spec.method)
    if best.error >= source.error:
        return f"{alone}, and no method improves on it: {title}, the best of {len(others)}, has {best.error:.1f} %."
    worst_camera, harm = max(
        ((camera, best.domain_errors[camera] - source.domain_errors[camera]) for camera in source.domain_errors),
        key=lambda pair: pair[1],
    )
    hurt = (
        f" It is {harm:.1f} points worse than the source network on `{worst_camera}`: adaptation can hurt."
        if harm > HARM
        else " On no camera is it more than half a point worse than the source network."
    )
    return f"{alone}, {title}, the best of {len(results)}, {best.error:.1f} %.{hurt}"


def recommended_first(results: list[CellResult]) -> str:
    """Where the recommended method is not the best one, in words; ``""`` if it is everywhere, or was not run."""
    ours = next((result for result in results if result.spec.method == RECOMMENDED), None)
    if ours is None:
        return ""
    title, best = method_title(RECOMMENDED), min(results, key=lambda result: result.error)
    told = []
    for camera, error in ours.domain_errors.items():
        ahead = min(results, key=lambda result: result.domain_errors[camera])
        if ahead.domain_errors[camera] < error:
            other = f"{method_title(ahead.spec.method)} {ahead.domain_errors[camera]:.1f} %"
            told.append(f"on `{camera}` ({error:.1f} %, {other})")
    if best.error < ours.error:
        told.append(f"over all pictures ({ours.error:.1f} %, {method_title(best.spec.method)} {best.error:.1f} %)")
    first = f"**{title} is not first {' nor '.join(told)}.** " if told else ""
    source = next(result for result in results if result.spec.method == "source")
    harms = {camera: error - source.domain_errors[camera] for camera, error in ours.domain_errors.items()}
    hurt = [f"{harm:.1f} points worse than the source network on `{at}`" for at, harm in harms.items() if harm > HARM]
    return f"{first}It is {' and '.join(hurt)}. " if hurt else first


def section_text(section: Section, results: list[CellResult], drawn: dict[str, Figure]) -> str:
    """A recipe's section: a sentence, the table, the figures."""
    run = {result.spec.method for result in results}
    lacking = [method_title(name) for name in METHODS if name not in run]
    parts = [f"## {section.title}", section.intro, sentence(results)]
    if lacking:
        parts.append(f"Not run here yet: {', '.join(lacking)}.")
    if COSTLY not in run:
        others = sum(method_class(name).cost for name in METHODS)
        parts.append(
            f"{method_title(COSTLY)} is left out (`--methods {COSTLY}` runs it): a step costs "
            f"{method_class(COSTLY).cost:.0f} forwards of the network, those of all others together {others:.0f}."
        )
    for block in section.blocks:
        if isinstance(block, Table):
            parts.append(to_markdown(block))
        elif isinstance(block, Figure):
            name = f"{section.name.rpartition('-')[0]}-hours"
            drawn[name] = block
            parts += [f"![{block.title}]({PICTURES}/{name}.svg)", block.caption]
    return "\n\n".join(parts)


def make_page(out: Path) -> tuple[str, Mapping[str, Figure]]:
    """The page and its figures by name."""
    found = by_id(load_results(out))
    drawn = {"drift": drift()}
    parts = [
        "# Parking cameras, as they were filmed",
        "Most streams of this benchmark are drawn: images and labels drift as a generator says. Here nothing is drawn. "
        "[PKLot](https://web.inf.ufpr.br/vri/databases/parking-lot-database) (CC BY 4.0) has parking spaces seen by "
        "three cameras over eight months; a network trained on one of them meets the others, and other weather, in the "
        "order in which the pictures were taken. It has to say whether a space is empty or occupied.",
        "Run it again with `make parking` (`grotta reproduce parking` and `parking-all-weather`, then this page), with "
        "the pictures in a data root: see `grotta data get pklot`.",
        "## What drifts",
        f"![What drifts]({PICTURES}/drift.svg)",
        drawn["drift"].caption + " Light follows the sun and the weather; the label mix follows working hours, so that "
        "neighbouring pictures have similar labels, and a method that expects balanced batches is misled.",
    ]
    for recipe, scope in saved_recipes(out, all_recipes()):
        if recipe in (PARKING, ALL_WEATHER):
            results = [found[spec.id] for spec in recipe.cells(scope) if spec.id in found]
            parts.append(section_text(recipe_section(recipe, scope, found), results, drawn))
    parts.append(
        "## Read it with care\n\nThe pictures are 36 × 36 pixels of single spaces, cut from frames that show many, "
        "so 24 pictures share a moment; one seed and one network each. Differences of a few tenths mean nothing."
    )
    return "\n\n".join(parts) + "\n", drawn


def main() -> None:
    """Write the page and its pictures."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/parking")
    page, drawn = make_page(out)
    for name, figure in drawn.items():
        _files.write(DOCS / PICTURES / f"{name}.svg", figure_svg(figure).encode())
    _files.write(DOCS / "parking.md", page.encode())
    print(DOCS / "parking.md")


if __name__ == "__main__":
    main()
