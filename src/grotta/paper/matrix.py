"""Beyond the paper: the regret matrix, methods by situations. Users do not know which situation is theirs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from grotta._check import check_whole
from grotta.bench.inputs.check import check_spec
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.recipe import Found, Recipe
from grotta.paper.scope import Scope
from grotta.paper.situations import SITUATIONS, Situation
from grotta.report.document import Block, Line, Listing
from grotta.report.labels import label_shift, plural
from grotta.report.printed import Printed
from grotta.report.sections.regret import regret_blocks

RECOMMENDED = "grotta+"
# Rows: a method, or a method and its preset. CoTTA takes as long as all others together: only when it is asked for.
QUICK_ROWS = ("source", "bn", "tent", "lame", "rotta", "note", "grotta fast", RECOMMENDED)
ROWS = ("source", "bn", "pl", "tent", "lame", "ods", "note", "rotta", "grotta", RECOMMENDED)


def choose(
    situations: Iterable[Situation], *, quick: bool, full: bool, data_root: Path | None = None
) -> tuple[list[Situation], dict[str, str]]:
    """The situations that are asked for and can be run here, and what the others lack, by name.

    Those that need no download are asked for by default; of these, the quick ones, or all situations if ``full``.
    """
    if quick and full:
        raise ValueError("quick must be left out with full, got both")
    asked = [one for one in situations if full or (one.quick if quick else one.bundled)]
    lacking = {one.name: reason for one in asked if (reason := one.missing(data_root))}
    return [one for one in asked if one.name not in lacking], lacking


def matrix_scope(
    *,
    methods: Sequence[str] | None = None,
    seeds: int = 1,
    quick: bool = False,
    full: bool = False,
    data_root: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Scope:
    """The scope of the matrix: a base for each situation that can be run here, and a row for each method.

    ``methods`` are rows: ``grotta``, or ``grotta fast`` for a preset. ``tell`` is called with what each situation lacks
    that is left out.

    >>> scope = matrix_scope(quick=True)
    >>> len(scope.bases), scope.methods[-2:]
    (8, ('grotta fast', 'grotta+'))
    """
    check_whole("seeds", seeds, at_least=1)
    rows = tuple(methods or (QUICK_ROWS if quick else ROWS))
    for row in rows:
        check_spec(_with_row(SITUATIONS[0].base, row))
    situations, lacking = choose(SITUATIONS, quick=quick, full=full, data_root=data_root)
    for name, reason in lacking.items():
        tell(f"left out: {name}: {reason}")
    if not situations:
        raise ValueError("no situation of the matrix can be run here")
    bases = tuple(one.base for one in situations)
    return Scope(bases=bases, methods=rows, gammas=(bases[0].gamma,), seeds=seeds, only_gammas=True)


def matrix_cells(scope: Scope) -> list[CellSpec]:
    """Every row in every situation, with every seed."""
    return [spec for base in scope.bases for row in scope.methods for spec in _seeded(scope, base, row)]


def matrix_blocks(scope: Scope, found: Found, printed: Printed) -> list[Block]:
    """The regrets as a picture and by method, the errors behind them, and what the situations are."""
    known = {one.base: one for one in SITUATIONS}
    situations = [known.get(base, Situation(base.label, base)) for base in scope.bases]
    errors: dict[str, Mapping[str, float]] = {}
    seeds: dict[str, int] = {}
    results: list[CellResult] = []
    for one in situations:
        here = {row: [found[s.id] for s in _seeded(scope, one.base, row) if s.id in found] for row in scope.methods}
        runs = shared_runs(here)
        if runs:
            errors[one.name] = situation_errors(one, runs)
            seeds[one.name] = len(next(iter(runs.values())))
        results += [result for found_here in runs.values() for result in found_here]
    if not errors:
        return []
    return [*regret_blocks(errors, results), _listing([one for one in situations if one.name in seeds], seeds)]


def shared_runs(runs: Mapping[str, Sequence[CellResult]]) -> dict[str, list[CellResult]]:
    """Of the runs of each row in one situation, those with seeds that all rows have: other streams are no comparison.

    A row without any run is left out.
    """
    there = [{result.spec.seed for result in found} for found in runs.values() if found]
    shared = set.intersection(*there) if there else set()
    kept = {row: [result for result in found if result.spec.seed in shared] for row, found in runs.items()}
    return {row: found for row, found in kept.items() if found}


def situation_errors(situation: Situation, runs: Mapping[str, Sequence[CellResult]]) -> dict[str, float]:
    """The error of each row in per cent, mean over its runs and the domains that count."""
    return {
        row: fmean(fmean(result.domain_errors[domain] for domain in situation.scored) for result in found)
        for row, found in runs.items()
    }


def _with_row(base: CellSpec, row: str) -> CellSpec:
    method, _, preset = row.partition(" ")
    return replace(base, method=method, preset=preset or "paper", label="")


def _seeded(scope: Scope, base: CellSpec, row: str) -> list[CellSpec]:
    return [replace(_with_row(base, row), seed=seed, stream_seed=seed) for seed in range(scope.seeds)]


def _listing(situations: Sequence[Situation], seeds: Mapping[str, int]) -> Listing:
    rows: list[Line] = []
    for one in situations:
        base = one.base
        shift = label_shift(base.stream, base.gamma)
        length = f"{base.images:,}" if base.images else "all"
        network = base.model.partition("@")[0]
        count = plural(len(base.domains), "domain")
        batch, runs = str(base.batch_size), str(seeds[one.name])
        rows.append((one.name, base.dataset, network, shift, count, length, batch, runs))
    heads = ("Situation", "Data", "Network", "Labels", "Stream", "Images per domain", "Batch", "Seeds")
    notes = [
        "Every method saw the same streams; mean over domains and seeds. Errors on garbage (noise, blank pictures, a "
        "single class) do not count."
    ]
    left = [one.name for one in SITUATIONS if one.base not in {other.base for other in situations}]
    if left:
        notes.append(f"Not run ({len(left)} of {len(SITUATIONS)}): {'; '.join(left)}.")
    return Listing("situations", "Situations", heads, tuple(rows), 0, tuple(notes))


RECIPE = Recipe(
    name="matrix",
    title="Regret matrix",
    about="Beyond the paper: how far each method is behind the best one, situation by situation.",
    cells=matrix_cells,
    blocks=matrix_blocks,
    fixed=(
        *("dataset", "domains", "model", "preset", "gammas"),
        *("stream", "period", "batch_size", "image_size", "images", "per_stream"),
    ),
    own_scope=matrix_scope,
    in_all=False,
)
