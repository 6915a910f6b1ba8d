"""The tables of a benchmark: errors by method and gamma, by domain, and from source to target domain."""

from collections.abc import Sequence

from grotta.bench.store.results import CellResult
from grotta.report.labels import (
    data_name,
    gamma_head,
    gamma_name,
    gammas,
    has_gamma,
    label_shift,
    mean_error,
    row_key,
    row_keys,
    row_label,
    slug,
)
from grotta.report.printed import AVERAGE, NOTHING_PRINTED, Printed, PrintedTable
from grotta.report.sections.notes import PRINTED_STREAM, provenance_notes
from grotta.report.sections.setups import TRANSFER_DOMAINS, setup_of
from grotta.report.table import Entry, Table, pivot


def main_table(
    results: Sequence[CellResult], printed: Printed = NOTHING_PRINTED, *, name: str = "main", title: str = ""
) -> Table:
    """Errors by method and gamma, averaged over the setups of the results: those of a data set's source models."""
    dataset, stream = results[0].spec.dataset, results[0].spec.stream
    theirs = _find(results, printed, f"main/{dataset}")
    return pivot(
        [Entry(row_key(r.spec), gamma_name(r.spec.gamma), mean_error(r), r) for r in results],
        name=name,
        title=title
        or f"{data_name(dataset)}: error (%) by method{' and γ' if has_gamma(stream) else ''}, mean over domains",
        columns=[gamma_name(gamma) for gamma in gammas(results)],
        rows=row_keys(results),
        paper=theirs,
        label=row_label,
        head=lambda gamma: gamma_head(gamma) if has_gamma(stream) else stream,
        notes=provenance_notes(results, printed, theirs.dataset if theirs else ""),
    )


def domain_table(
    results: Sequence[CellResult], gamma: float, printed: Printed = NOTHING_PRINTED, *, name: str = "domains"
) -> Table:
    """Errors by method and domain at one gamma, the domains in stream order; all results of one setup."""
    setup = setup_of(results[0])
    here = [result for result in results if result.spec.gamma == gamma]
    theirs = _find(here, printed, f"domains/{setup.dataset}/{gamma_name(gamma)}")
    at = label_shift(setup.stream, gamma)
    return pivot(
        [Entry(row_key(r.spec), domain, error, r) for r in here for domain, error in r.domain_errors.items()],
        name=f"{name}-{gamma_name(gamma)}",
        title=f"{data_name(setup.dataset)}: error (%) by domain at {at}, in stream order",
        columns=setup.domains,
        rows=row_keys(here),
        paper=theirs,
        label=row_label,
        head=lambda domain: domain.replace("_", " "),
        notes=provenance_notes(here, printed, theirs.dataset if theirs else ""),
    )


def transfer_table(
    results: Sequence[CellResult],
    method: str,
    gamma: float,
    printed: Printed = NOTHING_PRINTED,
    *,
    name: str = "transfer",
) -> Table:
    """Errors of one row of the main table by source model and target domain at one gamma."""
    dataset = results[0].spec.dataset
    here = [r for r in results if r.spec.gamma == gamma and row_key(r.spec) == method and setup_of(r).source]
    domains = TRANSFER_DOMAINS[dataset]
    theirs = _find(here, printed, f"transfer/{dataset}/{gamma_name(gamma)}/{method}")
    name_shown, mark = row_label(method)
    entries = [Entry(setup_of(r).source, target, error, r) for r in here for target, error in r.domain_errors.items()]
    if {entry.row for entry in entries} == set(domains):
        entries += [entry._replace(row=AVERAGE) for entry in entries]
    return pivot(
        entries,
        name=f"{name}-{gamma_name(gamma)}-{slug(method)}",
        title=f"{dataset}, {name_shown}{' †' if mark else ''}: error (%) from source (row) to target at "
        f"{label_shift(results[0].spec.stream, gamma)}",
        header="Source",
        columns=domains,
        rows=(*domains, AVERAGE),
        rivals=False,
        applies=lambda source, target: source != target,
        paper=theirs,
        head=lambda domain: domain.replace("_", " "),
        notes=provenance_notes(here, printed, theirs.dataset if theirs else ""),
    )


def _find(results: Sequence[CellResult], printed: Printed, name: str) -> PrintedTable | None:
    """The published table of that name, if the streams of the results are of its kind."""
    return printed.tables.get(name) if all(result.spec.stream == PRINTED_STREAM for result in results) else None
