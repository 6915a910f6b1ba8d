"""The regret matrix of docs/records/matrix.jsonl as Markdown: all of it, a summary, and by kind of stream."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult
from grotta.paper.matrix import matrix_blocks, shared_runs, situation_errors
from grotta.paper.recipe import by_id
from grotta.paper.scope import Scope
from grotta.paper.situations import SITUATIONS
from grotta.report.document import Listing
from grotta.report.figure import Figure
from grotta.report.labels import row_key, row_keys, row_label
from grotta.report.printed import NOTHING_PRINTED
from grotta.report.render.notation import item
from grotta.report.sections.regret import Regret, regrets

NAME = "matrix"
# Kinds of streams, and what the name of a situation has in it; the first that fits counts.
KINDS: Mapping[str, tuple[str, ...]] = {
    "one image at a time": ("batch 1",),
    "images as in training": ("clean",),
    "real parking cameras": ("parking",),
    "a thousand classes, one image of each": ("imagenet",),
    "no batch normalisation": ("LayerNorm", "GroupNorm"),
    "only two of ten classes": ("two of ten",),
    "garbage in between": ("garbage",),
    "domains of 300 to 1,000 images": ("domains of 500", "domains of 1,000", "ten returns"),
    "mild corruption (severity 1 and 3)": ("severity",),
    "batches of 16 and 256": ("batch 16", "batch 256"),
    "hardly any label shift (γ of 1 and 10, or none)": ("iid", "γ 10", "γ 1"),
    "labels in runs (γ = 0.1)": ("γ 0.1", "domains of 10,000"),
    "labels in long runs (γ of 0.01 to 0.0001)": ("γ 0.01", "γ 0.001", "γ 0.0001"),
}
_EXACT = ("batch 1", "γ 10", "γ 1", "γ 0.1", "γ 0.01", "γ 0.001", "γ 0.0001")  # at the end of a name


def is_situation(spec: CellSpec) -> bool:
    """Whether a cell is one of the matrix."""
    return _base(spec) in _BASES


def kind(situation: str) -> str:
    """The kind of stream that a situation is.

    >>> kind("cifar10, batch 1"), kind("cifar10, batch 16"), kind("fashion, clean, γ 0.1")
    ('one image at a time', 'batches of 16 and 256', 'images as in training')
    """
    return next(
        name
        for name, parts in KINDS.items()
        if any(situation.endswith(f" {part}") if part in _EXACT else part in situation for part in parts)
    )


def whole(results: Sequence[CellResult]) -> str:
    """How the matrix was made, the picture, the methods, every error behind it, and what the situations are."""
    _, methods, errors, situations = _blocks(results)
    first = ["![Regret by situation](images/regret.svg)", _markdown(methods)]
    more = [_markdown(errors), _markdown(situations), _made(results)]
    summary = "<details>\n<summary>Errors, streams, networks and data, situation by situation</summary>"
    return "\n\n".join([_command(results), *first, summary, *more, "</details>"])


def by_method(results: Sequence[CellResult]) -> str:
    """Mean and worst regret of each method."""
    return _markdown(_blocks(results)[1])


def by_kind(results: Sequence[CellResult]) -> str:
    """The mean regret of each method on each kind of stream; the smallest is bold."""
    found = _regrets(results)
    names = dict.fromkeys(name for one in found for name in one.regrets)
    lines = [f"| the stream has | situations | {' | '.join(row_label(one.method)[0] for one in found)} |"]
    lines.append(f"|:---|---:|{'---:|' * len(found)}")
    for title in KINDS:
        here = [name for name in names if kind(name) == title]
        if here:
            means = [_mean(one, here) for one in found]
            least = min(mean for mean in means if mean is not None)
            shown = [_number(mean, least) for mean in means]
            lines.append(f"| {title} | {len(here)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def picture(results: Sequence[CellResult]) -> Figure:
    """Regrets by situation and method."""
    drawn = _blocks(results)[0]
    assert isinstance(drawn, Figure)
    return drawn


VIEWS: Mapping[str, Callable[[Sequence[CellResult]], str]] = {"": whole, "methods": by_method, "kinds": by_kind}


def _base(spec: CellSpec) -> CellSpec:
    return replace(spec, method="source", preset="paper", options={}, seed=0, stream_seed=0, label="")


_BASES = {one.base for one in SITUATIONS}


def _scope(results: Sequence[CellResult]) -> Scope:
    there = {_base(r.spec) for r in results}
    bases = tuple(one.base for one in SITUATIONS if one.base in there)
    seeds = 1 + max(r.spec.seed for r in results)
    return Scope(bases=bases, methods=tuple(row_keys(results)), gammas=(0.1,), seeds=seeds, only_gammas=True)


def _blocks(results: Sequence[CellResult]) -> list[object]:
    blocks = list(matrix_blocks(_scope(results), by_id(results), NOTHING_PRINTED))
    if not blocks:
        raise ValueError("no situation has a seed that all of its methods were run with")
    return blocks


def _regrets(results: Sequence[CellResult]) -> list[Regret]:
    here = _compared(results)
    return regrets({one.name: situation_errors(one, here[one.base]) for one in SITUATIONS if one.base in here})


def _compared(results: Sequence[CellResult]) -> dict[CellSpec, dict[str, list[CellResult]]]:
    """The cells of each situation by row of tables, with seeds that all rows have."""
    found: dict[CellSpec, dict[str, list[CellResult]]] = {}
    for r in results:
        found.setdefault(_base(r.spec), {}).setdefault(row_key(r.spec), []).append(r)
    return {base: shared for base, runs in found.items() if (shared := shared_runs(runs))}


def _mean(one: Regret, names: Sequence[str]) -> float | None:
    here = [one.regrets[name] for name in names if name in one.regrets]
    return fmean(here) if len(here) == len(names) else None


def _number(mean: float | None, least: float) -> str:
    if mean is None:
        return ""
    return f"**{mean:.1f}**" if f"{mean:.1f}" == f"{least:.1f}" else f"{mean:.1f}"


def _command(results: Sequence[CellResult]) -> str:
    """The commands that make these cells: situations that need no download may have more seeds than the others."""
    bundled = {one.base for one in SITUATIONS if one.bundled}
    first = [r for r in results if r.spec.seed == 0]
    more = [r for r in results if r.spec.seed > 0]
    if {_base(r.spec) for r in more} - bundled:
        raise ValueError("more seeds than one must be of situations that need no download")
    lines = [f"grotta reproduce matrix --full --methods {methods}" for methods in _method_lists(first)]
    seeds = 1 + max(r.spec.seed for r in results)
    lines += [f"grotta reproduce matrix --seeds {seeds} --methods {methods}" for methods in _method_lists(more)]
    return "\n".join(["```sh", *lines, "```"])


def _method_lists(results: Sequence[CellResult]) -> list[str]:
    """The methods as an argument, one for each set of situations that some of them have."""
    rows: dict[frozenset[CellSpec], list[str]] = {}
    for key in row_keys(results):
        rows.setdefault(frozenset(_base(r.spec) for r in results if row_key(r.spec) == key), []).append(key)
    return [f'"{",".join(keys)}"' if " " in ",".join(keys) else ",".join(keys) for keys in rows.values()]


def _made(results: Sequence[CellResult]) -> str:
    """The stream hashes and the digests of network and pictures of each situation; all methods have the same."""
    lines = ["Streams (by seed from 0), networks and pictures by the start of their digests:", ""]
    lines += ["| Situation | Stream | Network | Pictures |", "|---|---|---|---|"]
    here = _compared(results)
    for one in SITUATIONS:
        found = [r for runs in here.get(one.base, {}).values() for r in runs]
        streams = dict(sorted({(r.spec.seed, r.stream_hash[:12]) for r in found})).values()
        for network, pictures in sorted({(r.model_fingerprint[:12], r.data_fingerprint[:12]) for r in found}):
            lines.append(f"| {one.name} | {', '.join(f'`{s}`' for s in streams)} | `{network}` | `{pictures}` |")
    return "\n".join(lines)


def _markdown(listing: object) -> str:
    assert isinstance(listing, Listing)
    lines = [f"{listing.title}:", "", f"| {' | '.join(listing.heads)} |"]
    lines.append(f"|{''.join('---:|' if right else '---|' for right in listing.numeric)}")
    lines += [f"| {' | '.join(item(value, listing.decimals) for value in row)} |" for row in listing.rows]
    notes = [f"- {note}" for note in listing.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes])
