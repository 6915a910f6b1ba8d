"""The report on a run's directory: what was asked for by recipe, then all other cells, beside the printed numbers."""

from collections.abc import Sequence
from pathlib import Path

from grotta.bench.events import Failure
from grotta.bench.store.results import CellResult, load_results
from grotta.paper.recipe import by_id, recipe_section
from grotta.paper.recipes import all_printed, all_recipes
from grotta.paper.saved import saved_recipes
from grotta.report.document import Report, Section
from grotta.report.labels import row_key
from grotta.report.sections.benchmark import TITLE, benchmark_sections, make_report
from grotta.report.sections.setups import by_setup


def directory_report(
    out: str | Path, *, title: str = TITLE, failures: Sequence[Failure] = (), known: Sequence[CellResult] = ()
) -> Report:
    """The report on everything in ``out``, which a run writes to; ``known`` results are not read from disk again."""
    results = load_results(out, known)
    unfinished = len(list((Path(out) / "cells").glob("*/"))) - len(results) - len(failures)
    note = f"Cells without a result, because they are running, were stopped, failed or are damaged: {unfinished}."
    return make_report(
        results,
        title=title,
        sections=directory_sections(Path(out), results),
        printed=all_printed(),
        failures=failures,
        warnings=[note] if unfinished > 0 else [],
    )


def directory_sections(out: Path, results: Sequence[CellResult]) -> list[Section]:
    """The sections of a report on a run's directory: what was asked for by recipe, then all other cells."""
    found, printed = by_id(results), all_printed()
    asked = saved_recipes(out, all_recipes())
    shown = {spec.id for recipe, scope in asked for spec in recipe.cells(scope)}
    others: list[CellResult] = []
    for group in by_setup(results).values():
        if any(result.spec.id not in shown for result in group):
            # a comparison is shown whole, even where a recipe needed some of its cells
            others += [r for r in group if r.spec.id not in shown or row_key(r.spec) == r.spec.method]
    sections = [recipe_section(recipe, scope, found, printed) for recipe, scope in asked]
    return [*sections, *benchmark_sections(others, printed)]
