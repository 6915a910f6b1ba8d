"""The regret matrix: how far each method is behind the best one, situation by situation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from grotta.bench.store.results import CellResult
from grotta.report.document import Block, Line, Listing
from grotta.report.figure import Figure, HeatMap
from grotta.report.labels import row_label

Errors = Mapping[str, Mapping[str, float]]  # situation -> row of tables -> error in per cent
_DARKEST = 20.0  # a regret in points from which on the picture is no darker


@dataclass(frozen=True)
class Regret:
    """The regrets of one method."""

    method: str  # the key of its row in tables: name, preset and options
    # its error minus that of the best method, by situation; only situations that it has an error in
    regrets: Mapping[str, float]

    @property
    def mean(self) -> float:
        return fmean(self.regrets.values())

    @property
    def worst(self) -> float:
        return max(self.regrets.values())


def regrets(errors: Errors) -> list[Regret]:
    """The regrets of all methods, sorted by their mean: those with an error in every situation first.

    >>> found = regrets({"clean": {"source": 8.0, "grotta": 11.5}, "fog": {"source": 40.0, "grotta": 20.0}})
    >>> [(one.method, one.mean, one.worst) for one in found]
    [('grotta', 1.75, 3.5), ('source', 10.0, 20.0)]
    """
    best = {situation: min(found.values()) for situation, found in errors.items() if found}
    methods = dict.fromkeys(method for found in errors.values() for method in found)
    made = [
        Regret(method, {where: found[method] - best[where] for where, found in errors.items() if method in found})
        for method in methods
    ]
    return sorted(made, key=lambda one: (len(one.regrets) < len(best), one.mean))


def regret_blocks(errors: Errors, results: Iterable[CellResult] = (), name: str = "regret") -> list[Block]:
    """The matrix as a picture, and two listings: methods by mean and by worst regret, and every error behind them.

    Args:
        errors: in per cent, by situation and then by row (see :func:`grotta.report.labels.row_key`), in the order to
            show. A method may lack a situation: it is then shown, but below those that have all.
        results: the cells behind the numbers.
        name: that the names of the blocks begin with.
    """
    found = regrets(errors)
    if not found:
        return []
    titles = [row_label(one.method)[0] for one in found]
    picture = HeatMap(
        "Regret (points)",
        rows=tuple(errors),
        columns=tuple(titles),
        values=tuple(tuple(one.regrets.get(situation) for one in found) for situation in errors),
        high=min(_DARKEST, max(one.worst for one in found)),
    )
    caption = (
        "How many points of error each method is behind the best one of each situation; methods with the smallest mean "
        "regret first."
    )
    return [
        Figure(f"{name}-map", "Regret by situation", caption, (picture,), tuple(results)),
        _summary(found, errors, name),
        _errors(found, titles, errors, name),
    ]


def _summary(found: list[Regret], errors: Errors, name: str) -> Listing:
    by_worst = sorted(found, key=lambda one: (len(one.regrets) < len(errors), one.worst))
    rows: list[Line] = []
    for one in found:
        where = max(one.regrets, key=lambda situation: one.regrets[situation])
        rank = by_worst.index(one) + 1
        rows.append(
            (row_label(one.method)[0], one.mean, one.worst, rank, where if one.worst > 0 else None, len(one.regrets))
        )
    heads = ("Method", "Mean regret", "Worst regret", "Rank by worst", "Worst situation", "Situations")
    notes = [f"Regret: error minus that of the best method of the situation, in points; {len(errors)} situations."]
    if any(len(one.regrets) < len(errors) for one in found):
        notes.append("Methods that lack a situation come last: their regrets are over fewer situations.")
    return Listing(f"{name}-methods", "Methods by mean and by worst regret", heads, tuple(rows), 2, tuple(notes))


def _errors(found: list[Regret], titles: list[str], errors: Errors, name: str) -> Listing:
    rows: list[Line] = [(situation, *(here.get(one.method) for one in found)) for situation, here in errors.items()]
    return Listing(f"{name}-errors", "Errors (%) behind the regrets", ("Situation", *titles), tuple(rows), 1)
