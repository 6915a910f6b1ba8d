"""Keep finished cells as records in docs/records, and write the tables of the pages from them.

    python scripts/result_tables.py runs/wide runs/matrix   # add the cells of these runs, then write the tables
    python scripts/result_tables.py                         # write the tables from the records alone

A record is a cell's ``result.json`` on one line, without the digest of its ``records.npz``. In a page,
``<!-- records NAME -->`` or ``<!-- records NAME VIEW -->`` begins what is made from ``docs/records/NAME.jsonl``, and
``<!-- end of records -->`` ends it; nothing in between is typed by hand.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path, PurePath
from statistics import fmean, stdev

from grotta import _files
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult, load_results, result_values
from grotta.data import CORRUPTIONS
from grotta.paper.tables.main import RECIPE as MAIN_TABLE
from grotta.report.figure import Figure
from grotta.report.labels import gamma_head, gamma_name, gammas, mean_error, plural, row_key, row_keys, row_label
from grotta.report.render.svg import figure_svg
from grotta.report.sections.figures import lines_panel
from grotta.report.sections.setups import TRANSFER_DOMAINS

sys.path.insert(0, str(Path(__file__).parent))

import matrix_tables

DOCS = Path(__file__).parents[1] / "docs"
RECORDS, PICTURES = DOCS / "records", "images"
PAGE = DOCS / "results.md"
PAGES = (PAGE, DOCS / "which-method.md")
BEGIN, END = "<!-- records ", "<!-- end of records -->"
PRINTED = MAIN_TABLE.printed
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # two-sided 95 %, by the number of runs
DRAWN = ("source", "lame", "note", "rotta", "grotta", "grotta fast", "grotta+")
FEWEST_DRAWN = 8  # domains: fewer are read from the table


def record_name(spec: CellSpec) -> str:
    """The file that a cell is kept in: data, network and size, or the regret matrix."""
    if matrix_tables.is_situation(spec):
        return matrix_tables.NAME
    network = spec.model.partition("@")[0] or "bundled"
    return f"{spec.dataset}-{network}-{spec.images or 'all'}"


def _anywhere(spec: CellSpec) -> CellSpec:
    """The spec as if weights lay in ``weights/``, wherever they do on the machine that ran it.

    A relative path is found in any data root and stays as it is.
    """
    network, _, file = spec.model.partition("@")
    here = not PurePath(file).is_absolute()
    return spec if here else replace(spec, model=f"{network}@weights/{PurePath(file).name}")


def read_records(path: Path) -> list[CellResult]:
    """The cells of one file."""
    return [_result(json.loads(line)) for line in path.read_text().splitlines()]


def add_records(results: Iterable[CellResult], folder: Path = RECORDS) -> None:
    """Keep these cells; one that is there already is replaced."""
    files: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        spec = _anywhere(result.spec)
        files[record_name(spec)].append(replace(result, spec=spec))
    for name, found in files.items():
        path = folder / f"{name}.jsonl"
        known = {r.spec.id: r for r in (*(read_records(path) if path.exists() else ()), *found)}
        ordered = sorted(known.values(), key=_order)
        lines = [json.dumps(result_values(result), ensure_ascii=False) for result in ordered]
        _files.write(path, ("\n".join(lines) + "\n").encode())


def filled(page: str, folder: Path = RECORDS) -> str:
    """The page with its tables made anew."""
    parts = page.split(BEGIN)
    for i, part in enumerate(parts[1:], 1):
        head, _, rest = part.partition(" -->")
        name, _, view = head.partition(" ")
        results = read_records(folder / f"{name}.jsonl")
        made = matrix_tables.VIEWS[view](results) if name == matrix_tables.NAME else block(name, results)
        parts[i] = f"{head} -->\n\n{made}\n\n{END}{rest.partition(END)[2]}"
    return BEGIN.join(parts)


def block(name: str, results: Sequence[CellResult]) -> str:
    """What a page says about the records of one file: how they were made, the table, the figure, domain by domain."""
    details = [domain_table(group, gamma) for group in _networks(results) for gamma in gammas(group)]
    parts = [how(results), method_table(results)]
    if _is_drawn(results):
        parts.append(f"![Error by domain, in stream order]({PICTURES}/{name}.svg)")
    seeded = any(r.spec.seed for r in results)
    if seeded:
        details.insert(0, seed_table(results))
    summary = "Seed by seed, and domain by domain" if seeded else "Domain by domain"
    return "\n\n".join([*parts, f"<details>\n<summary>{summary}</summary>", *details, "</details>"])


def how(results: Sequence[CellResult]) -> str:
    """Data, network, stream hashes and the commands."""
    lines = [f"- *Data*: {_data(results[0])}."]
    networks = {r.model: r.model_fingerprint for r in results}
    lines.append("- *Network*: " + ", ".join(f"`{model}` (weights `{mark[:12]}`)" for model, mark in networks.items()))
    for group in _networks(results):
        streams = {(r.spec.gamma, r.spec.stream_seed): r.stream_hash[:12] for r in group}
        told = "; ".join(
            f"γ = {gamma_head(gamma_name(gamma))}: "
            + ", ".join(f"`{mark}`" for (g, _), mark in sorted(streams.items()) if g == gamma)
            for gamma in gammas(group)
        )
        lines.append(f"- *Streams*, by seed from 0{_of(group, results)}: {told}.")
    if any(_paper(results, key, gamma) for key in row_keys(results) for gamma in gammas(results)):
        dataset = results[0].spec.dataset
        lines.append(f"- *In brackets*: the paper's, {PRINTED.networks[dataset]} on {PRINTED.data[dataset]}.")
    return "\n".join(lines) + "\n\n```sh\n" + "\n".join(_commands(results)) + "\n```"


def method_table(results: Sequence[CellResult]) -> str:
    """Errors by method and gamma with 95 % intervals, and how far each is behind the best of the table.

    Regrets are over the gammas that most of the methods have.
    """
    columns = gammas(results)
    runs = {key: {gamma: _runs(results, key, gamma) for gamma in columns} for key in row_keys(results)}
    means = {key: {g: fmean(values) for g, values in row.items() if values} for key, row in runs.items()}
    best = {gamma: min(row[gamma] for row in means.values() if gamma in row) for gamma in columns}
    common = [gamma for gamma in columns if 2 * sum(gamma in row for row in means.values()) > len(means)]
    heads = [f"γ = {gamma_head(gamma_name(gamma))}" for gamma in columns]
    lines = [f"| Method | Seeds | {' | '.join(heads)} | Regret, worst | Regret, mean |"]
    lines.append(f"|:---|---:|{'---:|' * (len(columns) + 2)}")
    for key, row in runs.items():
        shown = []
        for gamma, values in row.items():
            first = gamma in common and gamma in means[key] and _same(means[key][gamma], best[gamma])
            number = f"**{interval(values)}**" if first else interval(values)
            shown.append(f"{number}{_paper(results, key, gamma)}" if values else "")
        behind = [means[key][gamma] - best[gamma] for gamma in common if gamma in means[key]]
        regret = f"{max(behind):.1f} | {fmean(behind):.1f}" if len(behind) == len(common) else " | "
        seeds = sorted({len(values) for values in row.values() if values}, reverse=True)
        lines.append(f"| {_label(key)} | {', '.join(map(str, seeds))} | {' | '.join(shown)} | {regret} |")
    return "\n".join(lines)


def seed_table(results: Sequence[CellResult]) -> str:
    """The error of every run of the methods that have several."""
    columns = gammas(results)
    rows = {key: [_runs(results, key, gamma) for gamma in columns] for key in row_keys(results)}
    several = {key: row for key, row in rows.items() if max(map(len, row)) > 1}
    shown = [place for place in range(len(columns)) if any(len(row[place]) > 1 for row in several.values())]
    lines = ["Error (%) by seed (0, 1, ...; of stream and method), mean over domains:", ""]
    lines.append(f"| Method | {' | '.join(f'γ = {gamma_head(gamma_name(columns[place]))}' for place in shown)} |")
    lines.append(f"|:---|{'---:|' * len(shown)}")
    for key, row in several.items():
        numbers = [", ".join(f"{error:.1f}" for error in row[place]) for place in shown]
        lines.append(f"| {_label(key)} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def domain_table(results: Sequence[CellResult], gamma: float) -> str:
    """Errors by method and domain, in stream order, mean over the seeds."""
    here = [r for r in results if r.spec.gamma == gamma]
    domains = here[0].spec.domains
    network = f", {_told(here[0])}" if len(domains) < FEWEST_DRAWN else ""
    lines = [f"Error (%) at γ = {gamma_head(gamma_name(gamma))}{network}, in stream order:", ""]
    lines += [f"| Method | {' | '.join(d.replace('_', ' ') for d in domains)} | Avg |"]
    lines += [f"|:---|{'---:|' * (len(domains) + 1)}"]
    for key in row_keys(here):
        mine = [r for r in here if row_key(r.spec) == key]
        errors = [fmean(r.domain_errors[domain] for r in mine) for domain in domains]
        lines.append(f"| {_label(key)} | {' | '.join(f'{e:.1f}' for e in (*errors, fmean(errors)))} |")
    return "\n".join(lines)


def _is_drawn(results: Sequence[CellResult]) -> bool:
    """Whether there are methods to compare, over enough domains."""
    return len(results[0].spec.domains) >= FEWEST_DRAWN and len(row_keys(results)) > 1


def figure(name: str, results: Sequence[CellResult]) -> Figure:
    """Errors domain by domain, in stream order: what wears out rises."""
    panels = []
    for gamma in gammas(results):
        here = [r for r in results if r.spec.gamma == gamma]
        lines = {}
        if len(row_keys(here)) == 1:  # nothing to compare
            continue
        for key in row_keys(here):
            mine = [r for r in here if row_key(r.spec) == key]
            if key in DRAWN:
                lines[row_label(key)[0]] = [
                    (float(place), fmean(r.domain_errors[domain] for r in mine))
                    for place, domain in enumerate(here[0].spec.domains, 1)
                ]
        title = f"γ = {gamma_head(gamma_name(gamma))}"
        panels.append(lines_panel(lines, title, "domain, in stream order", x_scale="linear"))
    return Figure(name, "Error by domain", "", tuple(panels))


def printed_figure(page: str) -> Figure:
    """Errors domain by domain as the page prints them for all images of CIFAR-10's fifteen corruptions."""
    panels = []
    for gamma in ("10⁻¹", "10⁻⁴"):
        rows = page.split(f"**cifar10-c: error (%) by domain at γ = {gamma}, in stream order**\n\n")[1].split("\n\n")[0]
        lines = {}
        for row in rows.splitlines()[2:]:
            method, *cells, _ = [re.sub(r"\*\*|</?ins>", "", cell).strip() for cell in row.strip("| ").split(" | ")]
            lines[method] = [(float(place), float(cell)) for place, cell in enumerate(cells, 1)]
        panels.append(lines_panel(lines, f"γ = {gamma}", "domain, in stream order", x_scale="linear"))
    return Figure("cifar10-domains", "Error by domain, in stream order", "", tuple(panels))


def interval(values: Sequence[float]) -> str:
    """The mean of some runs, and half the width of its 95 % interval (Student's t).

    >>> interval([10.0, 11.0, 12.0]), interval([10.0]), interval([])
    ('11.0 ± 2.5', '10.0', '')
    """
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    half = STUDENT[len(values)] * stdev(values) / sqrt(len(values))
    return f"{fmean(values):.1f} ± {half:.1f}"


def _runs(results: Sequence[CellResult], key: str, gamma: float) -> list[float]:
    """One error per pair of seeds, the mean over the source networks if there are several."""
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for r in results:
        if row_key(r.spec) == key and r.spec.gamma == gamma:
            found[r.spec.stream_seed, r.spec.seed].append(mean_error(r))
    return [fmean(found[run]) for run in sorted(found)]


def _commands(results: Sequence[CellResult]) -> list[str]:
    """One command per set of methods that share network, preset, gammas and number of seeds."""
    grids: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for group in _networks(results):
        for key in row_keys(group):
            mine = [r for r in group if row_key(r.spec) == key]
            seeds = {g: 1 + max(r.spec.seed for r in mine if r.spec.gamma == g) for g in gammas(mine)}
            for count in sorted(set(seeds.values()), reverse=True):
                columns = tuple(gamma for gamma in seeds if seeds[gamma] == count)
                grids[_for_all(group[0]), mine[0].spec.preset, columns, count].append(mine[0].spec.method)
    return list(dict.fromkeys(_command(results, *key, methods) for key, methods in grids.items()))  # type: ignore[arg-type]


def _command(
    results: Sequence[CellResult], model: str, preset: str, columns: Sequence[float], seeds: int, methods: list[str]
) -> str:
    spec = next(r.spec for r in results if _for_all(r) == model)
    transfer = "{source}" in model
    words = ["grotta reproduce table-main" if transfer else "grotta bench"]
    words += ["--dataset", spec.dataset, "--model", model]
    if not transfer:
        words += ["--full"] if spec.domains == CORRUPTIONS else ["--domains", ",".join(spec.domains)]
    words += ["--images", str(spec.images)] if spec.images else []
    words += ["--stream", spec.stream] if spec.stream != CellSpec.stream else []
    words += ["--batch-size", str(spec.batch_size)] if spec.batch_size != CellSpec.batch_size else []
    words += ["--image-size", str(spec.image_size)] if spec.image_size != CellSpec.image_size else []
    words += ["--gammas", ",".join(f"{gamma:.0e}".replace("e-0", "e-") for gamma in columns)]
    words += ["--preset", preset] if preset != "paper" else []
    words += ["--seeds", str(seeds)] if seeds != 1 else []
    return " ".join([*words, "--methods", ",".join(dict.fromkeys(methods))])


def _for_all(result: CellResult) -> str:
    """The network of a cell for a command: with ``{source}`` where each domain has a network of its own."""
    source = _source(result)
    return result.spec.model.replace(source, "{source}") if source else result.spec.model


def _source(result: CellResult) -> str:
    """The domain that the network was trained on, if each domain has a network of its own."""
    others = set(TRANSFER_DOMAINS.get(result.spec.dataset, ())) - set(result.spec.domains)
    return next((name for name in others if name in result.spec.model), "")


def _told(result: CellResult) -> str:
    return f"from {_source(result)}" if _source(result) else result.model


def _paper(results: Sequence[CellResult], key: str, gamma: float) -> str:
    """The paper's number in brackets; the fast preset stands for the method."""
    table = PRINTED.tables.get(f"main/{results[0].spec.dataset}")
    value = table.value(key.removesuffix(" fast"), gamma_name(gamma)) if table else None
    return "" if value is None else f" ({value:.1f})"


def _networks(results: Sequence[CellResult]) -> list[list[CellResult]]:
    """The cells of each network, in order."""
    groups: dict[str, list[CellResult]] = defaultdict(list)
    for result in results:
        groups[result.model].append(result)
    return list(groups.values())


def _of(group: Sequence[CellResult], results: Sequence[CellResult]) -> str:
    return "" if len({r.model for r in results}) == 1 else f", {_told(group[0])}"


def _data(result: CellResult) -> str:
    spec = result.spec
    made = {"regenerated": " (regenerated, severity 5)", "original": "", "published": " (published)"}[result.provenance]
    size = f"{spec.images:,} images of each" if spec.images else "all images"
    side = f", {spec.image_size} pixels" if result.provenance == "original" else ""
    return f"`{spec.dataset}`{made}, {plural(len(spec.domains), 'domain')}, {size}{side}"


def _label(key: str) -> str:
    name, mark = row_label(key)
    return f"{name} †" if mark else name


def _same(one: float, other: float) -> bool:
    return f"{one:.1f}" == f"{other:.1f}"


def _order(result: CellResult) -> tuple[object, ...]:
    spec = result.spec
    return result.model, -spec.gamma, row_keys([result]), spec.stream_seed, spec.seed


def _result(values: dict[str, object]) -> CellResult:
    spec = CellSpec.from_dict(values.pop("spec"))  # type: ignore[arg-type]
    return CellResult(spec=spec, **{**values, "warnings": tuple(values["warnings"])})  # type: ignore[arg-type]


def main() -> None:
    """Add the cells of the runs named, then write the tables and figures."""
    for out in sys.argv[1:]:
        add_records(load_results(out))
    page = PAGE.read_text()
    for path in PAGES:
        _files.write(path, filled(path.read_text()).encode())
    pictures = {"cifar10-domains": printed_figure(page)}
    for path in sorted(RECORDS.glob("*.jsonl")):
        results = read_records(path)
        if path.stem == matrix_tables.NAME:
            pictures["regret"] = matrix_tables.picture(results)
        elif _is_drawn(results):
            pictures[path.stem] = figure(path.stem, results)
    for name, drawn in pictures.items():
        _files.write(DOCS / PICTURES / f"{name}.svg", figure_svg(drawn).encode())


if __name__ == "__main__":
    main()
