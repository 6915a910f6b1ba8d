"""The notes under a table: which data, network and streams are behind its numbers, and behind published ones."""

from collections.abc import Sequence
from dataclasses import replace

from grotta.bench.store.results import CellResult
from grotta.data.registry import is_from_files
from grotta.report.labels import data_name, has_gamma, is_reconstruction, method_title, network_name, plural
from grotta.report.printed import Printed
from grotta.report.sections.setups import Setup, by_setup

PRINTED_STREAM = "ptta"
_PROVENANCE = {
    "published": "published files",
    "regenerated": "regenerated: the corruptions were made by grotta",
    "original": "original pictures",
}


def provenance_notes(
    results: Sequence[CellResult], printed: Printed, dataset: str, *, ordered: bool = True
) -> tuple[str, ...]:
    """Which data and network are behind a table, on our side and, if ``dataset`` was used there, on the paper's.

    ``ordered`` says whether all results have their domains in the same order, which is then given.
    """
    if ordered:
        ours = [_describe(setup, group) for setup, group in by_setup(results).items()]
    else:
        anyhow = {replace(setup, domains=()): None for setup in by_setup(results)}
        ours = [_describe(setup, results) for setup in anyhow]
    theirs = []
    if dataset in printed.data:
        theirs.append(f"Paper: {printed.data[dataset]}; {printed.networks[dataset]}.")
    here = results[0].spec.dataset
    if theirs and dataset != here:
        theirs.append("The two sides are on different data: compare how rows and columns relate, not the numbers.")
    streams = {result.spec.stream for result in results}
    if printed.tables and not theirs and here not in printed.data:
        theirs.append(f"The paper has no numbers for {data_name(here)}.")
    elif printed.tables and not theirs and streams != {PRINTED_STREAM}:
        theirs.append(f"The paper has no numbers for these streams: all of its own are {PRINTED_STREAM} streams.")
    made_anew = sorted({result.spec.method for result in results if is_reconstruction(result.spec.method)})
    marked = [f"† Reconstruction: no code of {method_title(method)} is public." for method in made_anew]
    return (*ours, *_repeats(results), *theirs, *marked)


def _repeats(results: Sequence[CellResult]) -> list[str]:
    """A note if some pictures came more than once, with the streams that avoid it."""
    streams = sorted({result.spec.stream for result in results if result.distinct_images})
    if not streams:
        return []
    return [
        f"Some pictures came more than once: {' and '.join(streams)} streams draw with replacement. "
        "--stream exhaustive or recorded shows each picture once."
    ]


def _describe(setup: Setup, results: Sequence[CellResult]) -> str:
    data = ", ".join(sorted({_PROVENANCE.get(r.provenance, r.provenance) for r in results}))
    runs = len({(r.spec.stream_seed, r.spec.seed) for r in results})
    images = max(r.images for r in results)
    # other data sets have pictures of a fixed size
    size = f" of {setup.image_size} × {setup.image_size} pixels" if is_from_files(setup.dataset) else ""
    seen = max(r.distinct_images for r in results)
    again = f", {seen:,} different ones" if seen else ""
    periods = f", {setup.period} images per period" if has_gamma(setup.stream) else ""
    domains = f"{plural(len(setup.domains), 'domain')} ({' → '.join(setup.domains)}), " if setup.domains else ""
    return (
        f"Ours: {data_name(setup.dataset)}, {data}; {domains}{images:,} images per stream{size}{again}; "
        f"network {network_name(setup.model)}; {setup.stream} streams{periods}, "
        f"batches of {setup.batch_size}; {plural(runs, 'run')}."
    )
