"""What a table or figure is reproduced on: data, networks, methods, gammas and seeds."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from grotta.bench.grid import check_seeds, make_grid
from grotta.bench.inputs.opened import WITHOUT_GAMMA
from grotta.bench.spec import CellSpec
from grotta.report.labels import gamma_head, gamma_name
from grotta.report.sections.setups import TRANSFER_DOMAINS

SOURCE = "{source}"


@dataclass(frozen=True)
class Scope:
    """What the paper's experiments are reproduced on."""

    # a spec for each source model, with its data set, domains and network; its method and gamma do not count
    bases: tuple[CellSpec, ...]
    methods: tuple[str, ...]  # the methods compared
    gammas: tuple[float, ...]  # the label shifts, the largest first
    seeds: int = 1  # how many runs of each cell
    only_gammas: bool = False  # no recipe may use its own range: these were asked for, or the stream has no gamma

    def __post_init__(self) -> None:
        check_seeds(self.seeds)

    @property
    def dataset(self) -> str:
        return self.bases[0].dataset

    @property
    def hardest(self) -> float:
        return min(self.gammas)

    @property
    def at_hardest(self) -> str:
        """The hardest label shift, in words."""
        stream = self.bases[0].stream
        if stream in WITHOUT_GAMMA:
            return f"on {'an' if stream == 'iid' else 'a'} {stream} stream"
        return f"at γ = {gamma_head(gamma_name(self.hardest))}"

    def gammas_or(self, usual: Sequence[float]) -> tuple[float, ...]:
        """The gammas of a recipe that has a range of its own, the ``usual`` one."""
        return self.gammas if self.only_gammas else tuple(usual)

    def cells(self, method: str, gamma: float, options: Mapping[str, Any] | None = None) -> list[CellSpec]:
        """The cells of a method at a gamma: one for each source model and seed."""
        given: Any = options or {}
        return [
            replace(base, method=method, gamma=gamma, options=given, stream_seed=seed, seed=seed, label="")
            for base in self.bases
            for seed in range(self.seeds)
        ]

    def one_domain(self) -> Self:
        """One run on the first domain alone, as for the paper's toy experiments."""
        base = self.bases[0]
        return replace(self, bases=(replace(base, domains=base.domains[:1]),), seeds=1)

    def to_dict(self) -> dict[str, Any]:
        bases = [{k: v for k, v in base.to_dict().items() if k != "label"} for base in self.bases]
        values = {"bases": bases, "methods": list(self.methods), "gammas": list(self.gammas), "seeds": self.seeds}
        return {**values, "only_gammas": True} if self.only_gammas else values

    @property
    def digest(self) -> str:
        """A short name of the scope, the same on every machine."""
        content = json.dumps(self.to_dict(), sort_keys=True).encode()
        return hashlib.blake2b(content, digest_size=4).hexdigest()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        bases = tuple(CellSpec.from_dict(base) for base in values["bases"])
        if not (bases and values["methods"] and values["gammas"]):
            raise ValueError("a scope must have at least one base, one method and one gamma")
        only = bool(values.get("only_gammas", False))
        return cls(bases, tuple(values["methods"]), tuple(values["gammas"]), int(values["seeds"]), only)


def make_scope(
    dataset: str,
    *,
    methods: Sequence[str] | None = None,
    gammas: Sequence[float] | None = None,
    domains: Sequence[str] | None = None,
    model: str = "",
    seeds: int = 1,
    full: bool = False,
    data_root: Path | None = None,
    **setting: Any,
) -> Scope:
    """The scope for a data set: a few domains and two gammas, or all of them if ``full``.

    On PACS, OfficeHome and DomainNet, ``model`` has ``{source}`` in the place of the source domain's name, and each
    domain's model meets all others; with ``domains``, one model meets those. ``setting`` is what else a grid takes:
    preset, stream, period, batch_size, image_size. An iid stream has one gamma, which it ignores.
    """
    every: dict[str, Any] = {"methods": methods, "gammas": gammas, "seeds": seeds, "full": full, "data_root": data_root}
    every |= setting
    names = TRANSFER_DOMAINS.get(dataset, ())
    if names and domains is None:
        if SOURCE not in model:
            raise ValueError(
                f"model must be NAME@WEIGHTS with {SOURCE} in place of the domain's name, since {dataset} has one "
                f"model per domain, or be given with its domains; got {model!r}"
            )
        grids = [
            make_grid(dataset, domains=[d for d in names if d != source], model=model.replace(SOURCE, source), **every)
            for source in names
        ]
    else:
        grids = [make_grid(dataset, domains=domains, model=model, **every)]
    found = grids[0]
    return Scope(
        bases=tuple(replace(grid[0], method="source", gamma=1.0, label="") for grid in grids),
        methods=tuple(dict.fromkeys(spec.method for spec in found)),
        gammas=tuple(sorted({spec.gamma for spec in found}, reverse=True)),
        seeds=seeds,
        only_gammas=gammas is not None or setting.get("stream") in WITHOUT_GAMMA,
    )
