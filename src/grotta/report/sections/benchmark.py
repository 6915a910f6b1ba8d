"""The sections of a report on any results: one for each setup, with its tables and figures."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from grotta.bench.events import Failure
from grotta.bench.store.results import CellResult
from grotta.report.document import Block, NamedCell, Report, Section
from grotta.report.figure import Figure
from grotta.report.labels import (
    data_name,
    gammas,
    has_gamma,
    label_shift,
    network_name,
    plural,
    row_key,
    row_keys,
    row_label,
    seeds,
    slug,
)
from grotta.report.printed import NOTHING_PRINTED, Printed
from grotta.report.sections.figures import curves, unlabelled_figure, zeta_figure
from grotta.report.sections.listings import speed_listing, unlabelled_listing, used_listing
from grotta.report.sections.setups import Setup, by_setup, setup_names, setup_of, told_apart
from grotta.report.sections.tables import domain_table, main_table, transfer_table
from grotta.report.sections.warnings import reader_warnings

TITLE = "Test-time adaptation under PTTA"


def make_report(
    results: Sequence[CellResult],
    *,
    title: str = TITLE,
    sections: Sequence[Section] | None = None,
    printed: Printed = NOTHING_PRINTED,
    failures: Sequence[Failure] = (),
    warnings: Sequence[str] = (),
) -> Report:
    """The report on some results: ``sections``, or one section per setup, then time and memory."""
    rows = {key: place for place, key in enumerate(row_keys(results))}
    ordered = sorted(
        results,
        key=lambda r: (setup_of(r), -r.spec.gamma, rows[row_key(r.spec)], r.spec.stream_seed, r.spec.seed),
    )
    shown = distinct(benchmark_sections(ordered, printed) if sections is None else sections)
    speed = speed_listing(ordered)
    if speed is not None:
        shown.append(Section("cost", "Time and memory", "", (speed,)))
    names = setup_names(ordered)
    cells = tuple(NamedCell(_cell_name(result, names[setup_of(result)]), result) for result in ordered)
    said = (*reader_warnings(ordered, failures), *warnings)
    return Report(title, tuple(shown), used_listing(ordered, printed), cells, said)


def benchmark_sections(results: Sequence[CellResult], printed: Printed = NOTHING_PRINTED) -> list[Section]:
    """One section per setup; the source models of a data set that differ in nothing else share one."""
    groups: dict[Setup, list[tuple[Setup, list[CellResult]]]] = defaultdict(list)
    for setup, found in by_setup(results).items():
        groups[_without_source(setup)].append((setup, found))
    sections: list[Section] = []
    for members in groups.values():
        if len({setup.source for setup, _ in members}) > 1:
            together = [result for _, found in members for result in found]
            sections.append(_transfer_section(_free_name(sections, members[0][0]), together, printed))
            continue
        for setup, found in members:
            sections.append(_setup_section(_free_name(sections, setup), setup, found, printed))
    return sections


def distinct(sections: Sequence[Section]) -> list[Section]:
    """The sections; where several have the same heading, what distinguishes them is added to it."""
    alike: dict[str, list[int]] = defaultdict(list)
    for place, section in enumerate(sections):
        alike[section.heading].append(place)
    named = list(sections)
    for places in alike.values():
        for place, words in zip(places, told_apart([sections[place].results for place in places])):
            section = sections[place]
            named[place] = replace(section, where=", ".join(filter(None, (section.where, words))))
    return named


def _setup_section(name: str, setup: Setup, results: list[CellResult], printed: Printed) -> Section:
    data, network = data_name(setup.dataset), network_name(setup.model)
    if (listing := unlabelled_listing(results, f"{name}-unlabelled")) is not None:
        figure = unlabelled_figure(results, f"{name}-unlabelled-curves")
        return Section(name, f"{data}, {network}", f"{network} on {data}, without labels.", (listing, figure))
    plain = [result for result in results if row_key(result.spec) == result.spec.method] or results
    blocks: list[Block] = [main_table(plain, printed, name=f"{name}-main")]
    if len(plain) < len(results):
        methods = {result.spec.method for result in results if row_key(result.spec) != result.spec.method}
        varied = [result for result in results if result.spec.method in methods]
        title = f"{data}: variants, error (%){' by γ' if has_gamma(setup.stream) else ''}, mean over domains"
        blocks.append(main_table(varied, printed, name=f"{name}-variants", title=title))
    blocks += [curves(plain, f"{name}-curves"), zeta_figure(plain, f"{name}-zeta")]
    blocks += [domain_table(plain, gamma, printed, name=f"{name}-domains") for gamma in gammas(plain)]
    domains = plural(len(setup.domains), "domain")
    intro = f"{network} on {domains} of {data}, one after the other, never reset."
    shown = tuple(block for block in blocks if not isinstance(block, Figure) or block.panels)
    return Section(name, f"{data}, {network}", intro, shown)


def _transfer_section(name: str, results: list[CellResult], printed: Printed) -> Section:
    dataset = results[0].spec.dataset
    blocks: list[Block] = [main_table(results, printed, name=f"{name}-main")]
    for gamma in gammas(results):
        here = [result for result in results if result.spec.gamma == gamma]
        blocks += [transfer_table(here, key, gamma, printed, name=f"{name}-transfer") for key in row_keys(here)]
    intro = "Each domain's own model on the other domains, one after the other; the main table averages the models."
    return Section(name, dataset, intro, tuple(blocks))


def _without_source(setup: Setup) -> Setup:
    """What the setups of a data set's source models have in common: all but the weights and the other domains."""
    return replace(setup, model=setup.model.partition("@")[0], domains=()) if setup.source else setup


def _free_name(sections: Sequence[Section], setup: Setup) -> str:
    taken = {section.name for section in sections}
    start = slug(data_name(setup.dataset))
    names = (start if number == 1 else f"{start}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _cell_name(result: CellResult, where: str) -> str:
    spec = result.spec
    return f"{row_label(row_key(spec))[0]} on {where}, {label_shift(spec.stream, spec.gamma)}, {seeds(spec)}"
