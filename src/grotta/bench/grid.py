"""The grids of ``grotta bench``: from a few choices to the cells."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grotta import data
from grotta._check import check_whole
from grotta.bench.inputs.check import check_spec
from grotta.bench.inputs.network import check_classes, check_network, network_name
from grotta.bench.inputs.opened import WITHOUT_GAMMA
from grotta.bench.spec import CellSpec
from grotta.methods.registry import PAPER_METHODS

GAMMAS = (1e-1, 1e-4)
ALL_GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4)
IID_GAMMA = 1e-1  # a cell has a gamma; iid and recorded streams ignore it
# A short run has fewer corruptions and fewer images of each, but still three times what a memory holds.
SHORT_DOMAINS = 3
SHORT_IMAGES = 3200
MOST_SEEDS = 10_000


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
    images: int | None = 0,
    per_stream: bool = False,
    full: bool = False,
    data_root: Path | None = None,
) -> list[CellSpec]:
    """Every method at every gamma with every seed; by default the paper's methods on a part of its benchmark.

    ``full`` means all corruptions and four gammas, unless they are given. A seed is used for both the stream and
    the method. An iid or recorded stream has no gamma, so its grid has one column. With ``images=None``, a short run on
    corruptions takes ``SHORT_IMAGES`` of each domain. Every mistake that can be detected is a ``ValueError``
    here, before anything runs.

    >>> grid = make_grid(methods=["source", "grotta"], gammas=[0.1], domains=["fog"])
    >>> [spec.label for spec in grid], grid[0].model
    (['source', 'grotta'], 'fashion_resnet8')
    """
    check_seeds(seeds)
    for name, values in {"methods": methods, "gammas": gammas, "domains": domains}.items():
        if values is not None and len(set(values)) < max(len(values), 1):
            raise ValueError(f"{name} must be one or more different values, got {list(values)}")
    chosen_gammas = gammas or _usual_gammas(stream, full)
    if stream in WITHOUT_GAMMA and len(chosen_gammas) > 1:
        what = f"{'an' if stream == 'iid' else 'a'} {stream} stream"
        raise ValueError(f"gammas must be at most one for {what}, which ignores it, got {list(chosen_gammas)}")
    chosen_methods = methods or PAPER_METHODS
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
            images=images or 0,
            per_stream=per_stream,
        )
        for gamma in chosen_gammas
        for method in chosen_methods
        for seed in range(seeds)
    ]
    for cell in {cell.method: cell for cell in cells}.values():
        check_spec(cell)  # before the data, which may have to be downloaded
    recorded = stream == "recorded"
    opened = data.load(dataset, root=data_root, domains=domains, image_size=image_size, recorded=recorded)
    short = not domains and not full and opened.provenance != "original"
    chosen = opened.domains[:SHORT_DOMAINS] if short else opened.domains
    network = network_name(model, opened)
    check_network(network, data_root)
    check_classes(network, opened, data_root)
    most = SHORT_IMAGES if short and images is None else images or 0
    return [replace(cell, domains=chosen, model=network, images=most) for cell in cells]


def check_seeds(seeds: int) -> int:
    """``seeds`` if it is a number of runs that may end."""
    return check_whole("seeds", seeds, at_least=1, below=MOST_SEEDS + 1)


def _usual_gammas(stream: str, full: bool) -> tuple[float, ...]:
    if stream in WITHOUT_GAMMA:
        return (IID_GAMMA,)
    return ALL_GAMMAS if full else GAMMAS
