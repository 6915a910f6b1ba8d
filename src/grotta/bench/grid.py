"""The grids of ``grotta bench``: from a few choices to the cells."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grotta import data
from grotta.bench.cell.inputs import check, check_model, find_weights, model_name
from grotta.bench.spec import CellSpec
from grotta.methods import list_methods
from grotta.models.registry import weights_classes

# The rows of the paper's tables; methods that are registered besides them run when they are asked for.
TEN_METHODS = ("source", "bn", "pl", "tent", "lame", "cotta", "ods", "note", "rotta", "grotta")
GAMMAS = (1e-1, 1e-4)
ALL_GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4)
IID_GAMMA = 1e-1  # a cell has a gamma; an iid stream does not look at it
# A shorter run has fewer corruptions, never shorter ones: a domain is several times longer than the memory.
CORRUPTIONS_IN_SHORT = 3


def make_grid(
    dataset: str = "fashion-c",
    *,
    methods: Sequence[str] | None = None,
    gammas: Sequence[float] | None = None,
    seeds: int = 1,
    domains: Sequence[str] | None = None,
    model: str = "",
    preset: str = "paper",
    stream: str = "ptta",
    period: int = 100,
    batch_size: int = 64,
    image_size: int = 224,
    full: bool = False,
    data_root: Path | None = None,
) -> list[CellSpec]:
    """Every method at every gamma with every seed; what is left out is the paper's, in short.

    ``full`` takes all corruptions and four gammas where they are not given. A seed is that of the stream and of the
    method. An iid stream has no label shift, so its grid has one gamma. All that can be known to be wrong is a
    ``ValueError`` here, before anything runs.

    >>> grid = make_grid(methods=["source", "grotta"], gammas=[0.1], domains=["fog"])
    >>> [spec.label for spec in grid], grid[0].model
    (['source', 'grotta'], 'fashion_resnet8')
    """
    if seeds < 1:
        raise ValueError(f"seeds: expected at least 1, got {seeds}")
    for name, values in {"methods": methods, "gammas": gammas, "domains": domains}.items():
        if values is not None and len(set(values)) < max(len(values), 1):
            raise ValueError(f"{name}: expected different values, at least one; got {list(values)}")
    chosen_gammas = gammas or _usual_gammas(stream, full)
    if stream == "iid" and len(chosen_gammas) > 1:
        raise ValueError(f"gammas: they mean nothing to an iid stream, so at most one; got {list(chosen_gammas)}")
    chosen_methods = methods or [name for name in TEN_METHODS if name in list_methods()]
    cells = [
        CellSpec(
            method=method,
            dataset=dataset,
            domains=tuple(domains or ("all",)),
            gamma=gamma,
            preset=preset,
            period=period,
            stream=stream,
            stream_seed=seed,
            seed=seed,
            batch_size=batch_size,
            image_size=image_size,
        )
        for gamma in chosen_gammas
        for method in chosen_methods
        for seed in range(seeds)
    ]
    for cell in cells:
        check(cell)  # before the data, which may have to be downloaded
    opened = data.load(dataset, root=data_root, domains=domains, image_size=image_size)
    chosen = opened.domains if domains or full else in_short(opened)
    network = model_name(model, opened)
    check_model(network, data_root)
    check_classes(network, opened, data_root)
    return [replace(cell, domains=chosen, model=network) for cell in cells]


def check_classes(network: str, dataset: data.DomainDataset, data_root: Path | None) -> None:
    """Raise a ``ValueError`` if the network ``NAME`` or ``NAME@WEIGHTS`` was trained for another number of classes."""
    architecture, weights = find_weights(network, data_root)
    classes = None
    with contextlib.suppress(OSError, ValueError):  # what is wrong with the file, the cells will say
        classes = weights_classes(architecture, weights or "bundled")
    if classes is not None and classes != dataset.num_classes:
        raise ValueError(
            f"model: {dataset.name} has {dataset.num_classes} classes, but the network {network} was trained for "
            f"{classes}; train one for the classes of the data with `grotta train`, and give it as NAME@WEIGHTS"
        )


def _usual_gammas(stream: str, full: bool) -> tuple[float, ...]:
    if stream == "iid":
        return (IID_GAMMA,)
    return ALL_GAMMAS if full else GAMMAS


def in_short(dataset: data.DomainDataset) -> tuple[str, ...]:
    """The domains of a run that is not full: some of many corruptions, but all of a few real domains."""
    return dataset.domains if dataset.provenance == "original" else dataset.domains[:CORRUPTIONS_IN_SHORT]
