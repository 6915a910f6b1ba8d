"""What a report says, apart from how it looks: sections of tables and figures, and what a reader must be warned of."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import median

from grotta.bench.events import Failure
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper import printed as paper
from grotta.report.figure import Figure
from grotta.report.sections.figures import curves, first_runs, zeta_panel
from grotta.report.sections.names import setup_names, told_apart
from grotta.report.sections.tables import (
    Setup,
    by_setup,
    domain_table,
    gammas,
    label_shift,
    main_table,
    plural,
    row_key,
    row_keys,
    row_label,
    seeds,
    slug,
    transfer_table,
)
from grotta.report.table import Table

Line = tuple[str | float | None, ...]
SOURCES = "Data, networks, versions"
CELLS = (
    "A cell is one method on one stream. Its command gives the same numbers again, with the same versions to the last "
    "bit."
)
WHICH_ERROR = (
    "Tables average over domains, as the paper does: each domain counts the same, however many images it has. The "
    "error of all images, at which the curves end, is another where domains differ in length; each cell has both."
)


@dataclass(frozen=True)
class Listing:
    """A table of anything: numbers sort as numbers, ``None`` is a blank."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[Line, ...]
    decimals: int = 1
    notes: tuple[str, ...] = ()


Block = Table | Figure | Listing


@dataclass(frozen=True)
class Section:
    """A part of a report; ``where`` is the data that it is about, if its title does not say."""

    name: str
    title: str
    intro: str
    blocks: tuple[Block, ...]
    where: str = ""

    @property
    def heading(self) -> str:
        """The title with the data."""
        return f"{self.title}: {self.where}" if self.where else self.title

    @property
    def results(self) -> list[CellResult]:
        """The cells behind its tables and figures."""
        tables = [block for block in self.blocks if isinstance(block, Table)]
        behind = [cell.results for table in tables for row in table.rows for cell in row.cells]
        behind += [block.results for block in self.blocks if isinstance(block, Figure)]
        return list({result.spec.id: result for results in behind for result in results}.values())


@dataclass(frozen=True)
class Report:
    """Everything that a report shows."""

    title: str
    sections: tuple[Section, ...]
    results: tuple[CellResult, ...]
    warnings: tuple[str, ...] = ()

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Table)]

    @property
    def listings(self) -> list[Listing]:
        """The listings of all sections."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Listing)]

    @property
    def figures(self) -> list[Figure]:
        """The figures of all sections."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]


def benchmark_sections(results: Sequence[CellResult]) -> list[Section]:
    """A section for every setup, one for all source models of a data set that have the rest of it in common."""
    groups: dict[Setup, list[tuple[Setup, list[CellResult]]]] = defaultdict(list)
    for setup, found in by_setup(results).items():
        groups[_without_source(setup)].append((setup, found))
    sections: list[Section] = []
    for members in groups.values():
        if len({setup.source for setup, _ in members}) > 1:
            together = [result for _, found in members for result in found]
            sections.append(_transfer_section(_free_name(sections, members[0][0]), together))
            continue
        for setup, found in members:
            sections.append(_setup_section(_free_name(sections, setup), setup, found))
    return sections


def distinct(sections: Sequence[Section]) -> list[Section]:
    """The sections, those of one heading with what tells them apart in it."""
    alike: dict[str, list[int]] = defaultdict(list)
    for place, section in enumerate(sections):
        alike[section.heading].append(place)
    named = list(sections)
    for places in alike.values():
        for place, words in zip(places, told_apart([sections[place].results for place in places])):
            section = sections[place]
            named[place] = replace(section, where=", ".join(filter(None, (section.where, words))))
    return named


def reader_warnings(results: Sequence[CellResult], failures: Iterable[Failure] = ()) -> list[str]:
    """What a reader of the numbers must know: failed cells, short domains, mixed software or weights."""
    found = [f"Failed: {_where(failure.spec)}: {failure.message}" for failure in failures]
    said: dict[str, list[str]] = defaultdict(list)
    for result in results:
        for warning in result.warnings:
            said[f"{result.spec.dataset}: {warning}"].append(row_label(row_key(result.spec))[0])
    found += [f"{warning} ({', '.join(dict.fromkeys(rows))})." for warning, rows in said.items()]
    for setup, group in by_setup(results).items():
        if len({result.model_fingerprint for result in group}) > 1:
            found.append(f"{setup.dataset}: cells of one table ran with different weights of {setup.model}.")
        if len({result.provenance for result in group}) > 1:
            found.append(f"{setup.dataset}: cells of one table ran on published and on regenerated data.")
    versions = {tuple(sorted(result.versions.items())) for result in results}
    if len(versions) > 1:
        found.append(f"The cells were made with {len(versions)} different sets of software versions; see each cell.")
    return found


def speed_listing(results: Sequence[CellResult]) -> Listing | None:
    """Time and memory by row, if any are known; they are of the machine that ran the cells."""
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
    heads = ("Data", "Method", "Images a second, median", "Peak memory, MB", "Seconds, all cells")
    note = "Of the machine that ran the cells, with as many cells at once as it was asked for; not part of any result."
    return Listing("speed", "Time and memory", heads, tuple(rows), 0, (note,)) if rows else None


def used_listing(results: Sequence[CellResult]) -> Listing:
    """Which data, network and software are behind the numbers, and which behind the paper's."""
    rows = []
    for setup, group in by_setup(results).items():
        weights = ", ".join(sorted({result.model_fingerprint[:12] for result in group}))
        data = ", ".join(sorted({result.provenance for result in group}))
        theirs = [part for part in (paper.data(setup.dataset), paper.network(setup.dataset)) if part]
        rows.append((setup.dataset, data, setup.model, weights, "; ".join(theirs) or None))
    heads = ("Data", "Provenance", "Network", "Fingerprint of its weights", "The paper used")
    versions = sorted({f"{name} {version}" for result in results for name, version in result.versions.items()})
    note = f"Software: {', '.join(versions)}." if versions else "No cell has finished."
    return Listing("used", "What was used", heads, tuple(dict.fromkeys(rows)), notes=(note,))


def _setup_section(name: str, setup: Setup, results: list[CellResult]) -> Section:
    plain = [result for result in results if row_key(result.spec) == result.spec.method] or results
    blocks: list[Block] = [main_table(plain, name=f"{name}-main")]
    if len(plain) < len(results):
        methods = {result.spec.method for result in results if row_key(result.spec) != result.spec.method}
        varied = [result for result in results if result.spec.method in methods]
        blocks.append(
            main_table(
                varied, name=f"{name}-variants", title=f"{setup.dataset}: variants, error (%) by γ, mean over domains"
            )
        )
    blocks.append(curves(plain, f"{name}-curves"))
    blocks += [zeta_figure(plain, f"{name}-zeta")]
    blocks += [domain_table(plain, gamma, name=f"{name}-domains") for gamma in gammas(plain)]
    domains = plural(len(setup.domains), "domain")
    intro = f"{setup.model} on {domains} of {setup.dataset}, one after the other, never reset."
    return Section(name, f"{setup.dataset}, {setup.model}", intro, tuple(block for block in blocks if _shows(block)))


def _transfer_section(name: str, results: list[CellResult]) -> Section:
    dataset = results[0].spec.dataset
    blocks: list[Block] = [main_table(results, name=f"{name}-main")]
    for gamma in gammas(results):
        here = [result for result in results if result.spec.gamma == gamma]
        blocks += [transfer_table(here, key, gamma, name=f"{name}-transfer") for key in row_keys(here)]
    intro = "Each domain's own model on the other domains, one after the other; the main table averages the models."
    return Section(name, dataset, intro, tuple(blocks))


def _without_source(setup: Setup) -> Setup:
    """What the setups of a data set's source models have in common: all but the weights and the other domains."""
    return replace(setup, model=setup.model.partition("@")[0], domains=()) if setup.source else setup


def _free_name(sections: Sequence[Section], setup: Setup) -> str:
    taken = {section.name for section in sections}
    names = (slug(setup.dataset) if number == 1 else f"{slug(setup.dataset)}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def zeta_figure(results: Sequence[CellResult], name: str = "zeta", method: str = "grotta") -> Figure:
    """The imbalance score over time, a line a gamma."""
    named: dict[str, CellResult] = {}
    for gamma in gammas(results):
        first = first_runs([r for r in results if r.spec.gamma == gamma and row_key(r.spec) == method])
        named |= {label_shift(result.spec.stream, gamma): result for result in first.values()}
    return Figure(
        name=name,
        title="Imbalance score over time",
        caption=f"ζ of each batch of {row_label(method)[0]}'s predictions, averaged over the neighbouring batches: the "
        "smaller γ, the more one-sided the batches.",
        panels=(zeta_panel(named, "Imbalance score ζ"),) if named else (),
        results=tuple(named.values()),
    )


def _shows(block: Block) -> bool:
    return not isinstance(block, Figure) or bool(block.panels)


def _where(spec: CellSpec) -> str:
    return f"{spec.label} on {spec.dataset}, γ = {spec.gamma:g}, {seeds(spec)}"
