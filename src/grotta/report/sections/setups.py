"""Setups: what the cells of one table have in common, and names that distinguish them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from grotta.bench.store.results import CellResult
from grotta.data.registry import ENTRIES
from grotta.report.labels import data_name, gamma_head, gamma_name, gammas, parent_folder, plural

Group = Sequence[CellResult]

# Data sets on which each domain's own model meets the others; elsewhere there is one source model.
TRANSFER_DOMAINS = {name: entry.domains for name, entry in ENTRIES.items() if entry.domains}

# Setting -> how it is worded, and its value for a cell.
_SETTINGS: dict[str, tuple[str, Callable[[CellResult], Any]]] = {
    "folder": ("in {}", lambda result: parent_folder(result.spec.dataset)),
    "source": ("from {}", lambda result: setup_of(result).source),
    "model": ("{}", lambda result: result.model),
    "domains": ("{}", lambda result: result.spec.domains),
    "preset": ("preset {}", lambda result: result.spec.preset),
    "stream": ("{} streams", lambda result: result.spec.stream),
    "period": ("{} images per period", lambda result: result.spec.period),
    "batch_size": ("batches of {}", lambda result: result.spec.batch_size),
    "image_size": ("image size {}", lambda result: result.spec.image_size),
    "images": ("{} images per domain", lambda result: result.spec.images or "all"),
}
_NUMBERS = ("stream", "period", "batch_size", "image_size", "images")


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
    images: int

    @property
    def source(self) -> str:
        """The domain that the source model was trained on, if the other domains of its data set are the stream."""
        left = [name for name in TRANSFER_DOMAINS.get(self.dataset, ()) if name not in self.domains]
        return left[0] if len(left) == 1 else ""


def setup_of(result: CellResult) -> Setup:
    """The setup of a finished cell."""
    spec = result.spec
    same = {name: getattr(spec, name) for name in ("dataset", "domains", *_NUMBERS)}
    return Setup(model=result.model, **same)


def by_setup(results: Iterable[CellResult]) -> dict[Setup, list[CellResult]]:
    """The results of each setup, setups in order."""
    groups: dict[Setup, list[CellResult]] = defaultdict(list)
    for result in results:
        groups[setup_of(result)].append(result)
    return {setup: groups[setup] for setup in sorted(groups)}


def told_apart(groups: Sequence[Group]) -> list[str]:
    """What distinguishes each group of cells from the others, ``""`` where nothing does.

    A setting is named if every group has one value of it and not all have the same; the gammas only where no setting
    distinguishes two groups.
    """
    found = {name: values for name, (_, read) in _SETTINGS.items() if (values := _differing(groups, read))}
    known = [found[name] for name in ("source", "model", "domains") if name in found]
    if "source" in found and all(found["source"]) and len(set(zip(*known))) == len(set(found["source"])):
        # the source domain determines the model and the remaining domains
        found = {name: values for name, values in found.items() if name not in ("model", "domains")}
    else:
        found.pop("source", None)
    if "domains" in found:
        found["domains"] = domain_words(found["domains"])
    words = [[_SETTINGS[name][0].format(value) for value in values] for name, values in found.items()]
    if len(set(zip(*words))) < len(groups) and len({tuple(gammas(group)) for group in groups}) > 1:
        words.append([f"γ = {', '.join(gamma_head(gamma_name(g)) for g in gammas(group))}" for group in groups])
    return [", ".join(parts) for parts in zip(*words)] if words else [""] * len(groups)


def domain_words(orders: Sequence[Sequence[str]]) -> list[str]:
    """Domains in stream order by their number if that tells them apart, else by as many names as it takes.

    >>> domain_words([("fog",), ("fog", "snow")])
    ['1 domain', '2 domains']
    >>> domain_words([("fog", "snow", "frost"), ("fog", "frost", "snow")])
    ['fog → snow → …', 'fog → frost → …']
    """
    different = set(map(tuple, orders))
    if len(set(map(len, different))) == len(different):
        return [plural(len(order), "domain") for order in orders]
    for length in count(1):
        words = {order: " → ".join((*order[:length], *(["…"] if order[length:] else []))) for order in different}
        if len(set(words.values())) == len(different) or length >= max(map(len, different)):
            break
    return [words[tuple(order)] for order in orders]


def setup_names(results: Iterable[CellResult]) -> dict[Setup, str]:
    """The data set of each setup, with what distinguishes it from other setups on the same data."""
    setups: dict[str, dict[Setup, Group]] = defaultdict(dict)
    for setup, group in by_setup(results).items():
        setups[data_name(setup.dataset)][setup] = group
    return {
        setup: ", ".join(filter(None, (dataset, words)))
        for dataset, groups in setups.items()
        for setup, words in zip(groups, told_apart(list(groups.values())))
    }


def _differing(groups: Sequence[Group], read: Callable[[CellResult], Any]) -> list[Any]:
    """The value of each group; nothing if one has none or several, or if all have the same."""
    values = [{read(result) for result in group} for group in groups]
    if any(len(found) != 1 for found in values) or len(set().union(*values)) < 2:
        return []
    return [next(iter(found)) for found in values]
