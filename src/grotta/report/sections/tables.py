"""The tables of a benchmark: errors by method and gamma, by domain, and from source to target domain."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.data.registry import DOMAINNET, OFFICEHOME, PACS
from grotta.paper import printed as paper
from grotta.paper.printed import AVERAGE, PaperTable, gamma_name
from grotta.report.table import Entry, Table, pivot

METHOD_NAMES = {
    "source": "Source",
    "bn": "BN",
    "pl": "PL",
    "tent": "TENT",
    "lame": "LAME",
    "cotta": "CoTTA",
    "ods": "ODS",
    "note": "NOTE",
    "rotta": "RoTTA",
    "grotta": "GRoTTA",
}
PAPER_STREAM = "ptta"
RECONSTRUCTION = "reconstruction"
MARKS = {"ods": RECONSTRUCTION}

# Data sets on which each domain's own model meets the others; elsewhere there is one source model.
TRANSFER_DOMAINS = {each.name: each.domains for each in (PACS, OFFICEHOME, DOMAINNET)}

_PROVENANCE = {
    "published": "published files",
    "regenerated": "regenerated: the corruptions were made by grotta",
    "original": "original pictures",
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, order=True)
class Setup:
    """What the cells of one table have in common."""

    dataset: str
    model: str
    domains: tuple[str, ...]
    stream: str
    period: int
    batch_size: int
    image_size: int

    @property
    def source(self) -> str:
        """The domain that the source model was trained on, if the other domains of its data set are the stream."""
        left = [name for name in TRANSFER_DOMAINS.get(self.dataset, ()) if name not in self.domains]
        return left[0] if len(left) == 1 else ""


def setup_of(result: CellResult) -> Setup:
    """The setup of a finished cell."""
    spec = result.spec
    return Setup(spec.dataset, result.model, spec.domains, spec.stream, spec.period, spec.batch_size, spec.image_size)


def by_setup(results: Iterable[CellResult]) -> dict[Setup, list[CellResult]]:
    """The results of each setup, setups in order."""
    groups: dict[Setup, list[CellResult]] = defaultdict(list)
    for result in results:
        groups[setup_of(result)].append(result)
    return {setup: groups[setup] for setup in sorted(groups)}


def mean_error(result: CellResult) -> float:
    """The error in per cent, averaged over domains as the paper does: each counts the same, however long it is."""
    return fmean(result.domain_errors.values())


def both_errors(result: CellResult) -> str:
    """The two errors of a cell by name: that of the tables, and that over all images, where long domains count more."""
    return f"{mean_error(result):.2f} % mean over domains, {result.error:.2f} % of all images"


def seeds(spec: CellSpec) -> str:
    """The two seeds of a cell, each by its name."""
    return f"stream seed {spec.stream_seed}, method seed {spec.seed}"


def row_key(spec: CellSpec) -> str:
    """Method, preset and options in one string: what makes a row, whatever label the spec was given."""
    return replace(spec, label="").label


def row_label(key: str) -> tuple[str, str]:
    """The name of a row as shown, and the mark on it.

    >>> row_label("ods"), row_label("grotta k=10")
    (('ODS', 'reconstruction'), ('GRoTTA k=10', ''))
    """
    method, space, rest = key.partition(" ")
    return METHOD_NAMES.get(method, method) + space + rest, MARKS.get(method, "")


def row_keys(results: Iterable[CellResult]) -> list[str]:
    """The rows of some results: methods in the paper's order, others after them, variants under their method."""
    keys = {row_key(result.spec): result.spec for result in results}
    return sorted(keys, key=lambda key: _row_order(keys[key]))


def gammas(results: Iterable[CellResult]) -> list[float]:
    """The gammas of some results, the largest first."""
    return sorted({result.spec.gamma for result in results}, reverse=True)


def gamma_head(column: str) -> str:
    """A gamma as a table's head shows it.

    >>> gamma_head("0.0001"), gamma_head("0.5")
    ('10⁻⁴', '0.5')
    """
    mantissa, exponent = f"{float(column):e}".split("e")
    return f"10{str(int(exponent)).translate(_SUPERSCRIPT)}" if float(mantissa) == 1 else column


def label_shift(stream: str, gamma: float) -> str:
    """How the label mix of a stream changes, in a few words; an iid stream has no gamma.

    >>> label_shift("ptta", 0.1), label_shift("iid", 0.1)
    ('γ = 10⁻¹', 'no label shift')
    """
    return "no label shift" if stream == "iid" else f"γ = {gamma_head(gamma_name(gamma))}"


def find_paper(results: Sequence[CellResult], name: str) -> PaperTable | None:
    """The paper's table of that name, if the streams of the results are of its kind."""
    return paper.find(name) if all(result.spec.stream == PAPER_STREAM for result in results) else None


def plural(number: int, word: str) -> str:
    """A number of things.

    >>> plural(1, "domain"), plural(15, "domain")
    ('1 domain', '15 domains')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def slug(text: str) -> str:
    """``text`` as the name of a file or a place in a page.

    >>> slug("folder:/my data/Photos"), slug("grotta k=10")
    ('folder-my-data-photos', 'grotta-k-10')
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "x"


def main_table(results: Sequence[CellResult], *, name: str = "main", title: str = "") -> Table:
    """Errors by method and gamma, averaged over the setups of the results: those of a data set's source models."""
    dataset, stream = results[0].spec.dataset, results[0].spec.stream
    theirs = find_paper(results, f"main/{dataset}")
    return pivot(
        [Entry(row_key(r.spec), gamma_name(r.spec.gamma), mean_error(r), r) for r in results],
        name=name,
        title=title or f"{dataset}: error (%) by method and γ, mean over domains",
        columns=[gamma_name(gamma) for gamma in gammas(results)],
        rows=row_keys(results),
        paper=theirs,
        label=row_label,
        head=lambda gamma: stream if stream == "iid" else gamma_head(gamma),
        notes=provenance_notes(results, theirs.dataset if theirs else ""),
    )


def domain_table(results: Sequence[CellResult], gamma: float, *, name: str = "domains") -> Table:
    """Errors by method and domain at one gamma, the domains in stream order; all results of one setup."""
    setup = setup_of(results[0])
    here = [result for result in results if result.spec.gamma == gamma]
    theirs = find_paper(here, f"domains/{setup.dataset}/{gamma_name(gamma)}")
    return pivot(
        [Entry(row_key(r.spec), domain, error, r) for r in here for domain, error in r.domain_errors.items()],
        name=f"{name}-{gamma_name(gamma)}",
        title=f"{setup.dataset}: error (%) by domain at {label_shift(setup.stream, gamma)}, in stream order",
        columns=setup.domains,
        rows=row_keys(here),
        paper=theirs,
        label=row_label,
        head=lambda domain: domain.replace("_", " "),
        notes=provenance_notes(here, theirs.dataset if theirs else ""),
    )


def transfer_table(results: Sequence[CellResult], method: str, gamma: float, *, name: str = "transfer") -> Table:
    """Errors of one row of the main table by source model and target domain at one gamma."""
    dataset = results[0].spec.dataset
    here = [r for r in results if r.spec.gamma == gamma and row_key(r.spec) == method and setup_of(r).source]
    domains = TRANSFER_DOMAINS[dataset]
    theirs = find_paper(here, f"transfer/{dataset}/{gamma_name(gamma)}/{method}")
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
        notes=provenance_notes(here, theirs.dataset if theirs else ""),
    )


def provenance_notes(results: Sequence[CellResult], dataset: str, *, ordered: bool = True) -> tuple[str, ...]:
    """Which data and network are behind a table, on our side and, if it used ``dataset``, on the paper's.

    ``ordered`` says whether the order of the domains is one for all results and worth telling.
    """
    if ordered:
        ours = [_describe(setup, group) for setup, group in by_setup(results).items()]
    else:
        anyhow = {replace(setup, domains=()): None for setup in by_setup(results)}
        ours = [_describe(setup, results) for setup in anyhow]
    theirs = [f"Paper: {paper.data(dataset)}; {paper.network(dataset)}."] if paper.data(dataset) else []
    here = results[0].spec.dataset
    if theirs and dataset != here:
        theirs.append("The two sides are on different data: compare how rows and columns relate, not the numbers.")
    streams = {result.spec.stream for result in results}
    if not theirs and not paper.data(here):
        theirs.append(f"No numbers of the paper stand beside these: it has none for {here}.")
    elif not theirs and streams != {PAPER_STREAM}:
        theirs.append(f"No numbers of the paper stand beside these: its streams are of the kind {PAPER_STREAM}.")
    marked = any(result.spec.method in MARKS for result in results)
    reconstructed = ["† Reconstruction: no code of ODS is public."] if marked else []
    return (*ours, *theirs, *reconstructed)


def _describe(setup: Setup, results: Sequence[CellResult]) -> str:
    data = ", ".join(sorted({_PROVENANCE.get(r.provenance, r.provenance) for r in results}))
    runs = len({(r.spec.stream_seed, r.spec.seed) for r in results})
    images = max(r.images for r in results)
    # other data sets have pictures of one size, whatever is asked for
    decoded = setup.dataset.startswith("imagenet") or any(r.provenance == "original" for r in results)
    size = f" of {setup.image_size} × {setup.image_size} pixels" if decoded else ""
    domains = f"{plural(len(setup.domains), 'domain')} ({' → '.join(setup.domains)}), " if setup.domains else ""
    return (
        f"Ours: {setup.dataset}, {data}; {domains}{images:,} images a stream{size}; network {setup.model}; "
        f"{setup.stream} streams, {setup.period} images a period, batches of {setup.batch_size}; {plural(runs, 'run')}."
    )


def _row_order(spec: CellSpec) -> tuple[object, ...]:
    published = list(METHOD_NAMES)
    place = published.index(spec.method) if spec.method in published else len(published)
    options = tuple((key, _comparable(value)) for key, value in spec.options)
    return place, spec.method, spec.preset != "paper", spec.preset, options


def _comparable(value: object) -> tuple[int, float, str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if is_number else (1, 0.0, str(value))  # type: ignore[arg-type]
