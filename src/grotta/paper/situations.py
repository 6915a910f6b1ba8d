"""The situations of the regret matrix: they vary a stream in one way at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grotta.bench.inputs.network import check_network
from grotta.bench.inputs.opened import load_dataset
from grotta.bench.spec import CellSpec
from grotta.data.stand_ins import GARBAGE
from grotta.data.variants import Variant

# Not shot noise, contrast and frost: these are reserved for choosing settings.
DOMAINS = ("motion_blur", "fog", "gaussian_noise", "jpeg_compression")
LENGTH = 2000
EVERY = (*DOMAINS, "snow", "defocus_blur", "zoom_blur", "brightness", "elastic_transform", "pixelate", "impulse_noise")
VISITS = 10
IID: Mapping[str, Any] = {"stream": "iid"}


@dataclass(frozen=True)
class Situation:
    """A stream and a network on which methods are compared."""

    name: str  # in tables; it says what is different
    base: CellSpec  # a spec with everything but the method and the seeds
    quick: bool = False  # whether it is one of the few for a short run

    @property
    def bundled(self) -> bool:
        """Whether it needs no download: a network without a file of weights comes with the data it was trained on."""
        return "@" not in self.base.model

    @property
    def scored(self) -> tuple[str, ...]:
        """The domains whose errors count."""
        return tuple(domain for domain in self.base.domains if not is_garbage(domain))

    def missing(self, data_root: Path | None = None) -> str:
        """What it needs that is not here, in words, or ``""``; nothing is downloaded."""
        try:
            check_network(self.base.model, data_root)
            load_dataset(self.base, data_root, download=False)
        except (OSError, ValueError) as error:
            return str(error)
        return ""


def is_garbage(domain: str) -> bool:
    """Whether a domain is only there to disturb: its errors mean nothing.

    >>> [name for name in ("fog@3", "noise#2", "fog:Bag", "fog:Bag+Coat") if is_garbage(name)]
    ['noise#2', 'fog:Bag']
    """
    variant = Variant.parse(domain)
    return variant.base in GARBAGE or len(variant.classes) == 1


def returning(domains: Sequence[str], visits: int = VISITS) -> tuple[str, ...]:
    """Some domains one after the other, several times.

    >>> returning(["fog", "snow"], 2)
    ('fog', 'snow', 'fog#2', 'snow#2')
    """
    return tuple(name if visit == 1 else f"{name}#{visit}" for visit in range(1, visits + 1) for name in domains)


def _situation(name: str, start: CellSpec, quick: bool = False, **changes: Any) -> Situation:
    return Situation(name, replace(start, **changes, label=""), quick)


_USUAL = CellSpec(
    method="source", dataset="fashion-c", model="fashion_resnet8", domains=DOMAINS, gamma=0.1, images=LENGTH
)


def _everywhere(prefix: str, usual: CellSpec, quick: bool, label: str) -> list[Situation]:
    """The situations that small pictures with ten classes have; ``label`` is one of the classes."""
    garbage = ("motion_blur", "noise", "blank", f"fog:{label}", "fog", "gaussian_noise")

    def one(name: str, is_quick: bool = False, **changes: Any) -> Situation:
        return _situation(f"{prefix}, {name}", usual, quick and is_quick, **changes)

    return [
        *(one(f"γ {gamma:g}", gamma == 1e-4, gamma=gamma) for gamma in (1e-4, 1e-2, 1e-1, 10.0)),
        one("iid", True, **IID),
        one("clean, iid", True, domains=("clean",), **IID),
        one("severity 1", domains=tuple(f"{name}@1" for name in DOMAINS)),
        one("severity 3", domains=tuple(f"{name}@3" for name in DOMAINS)),
        one("domains of 500", True, domains=EVERY, images=500),
        one("batch 1", True, domains=DOMAINS[:2], images=1000, batch_size=1),
        one("batch 16", batch_size=16),
        one("batch 256", batch_size=256),
        one("ten returns", True, domains=returning(DOMAINS[:3]), images=300),
        one("garbage between", True, domains=garbage, images=1000),
    ]


def _fashion() -> list[Situation]:
    vit = replace(_USUAL, model="fashion_vit")
    two = tuple(f"{name}:Pullover+Coat" for name in DOMAINS)
    return [
        *_everywhere("fashion", _USUAL, True, "Bag"),
        _situation("fashion, γ 0.001", _USUAL, gamma=1e-3),
        _situation("fashion, γ 1", _USUAL, gamma=1.0),
        _situation("fashion, clean, γ 0.1", _USUAL, domains=("clean",)),
        _situation("fashion, domains of 1,000", _USUAL, domains=EVERY, images=1000),
        _situation("fashion, domains of 10,000", _USUAL, domains=DOMAINS[:2], images=0),
        _situation("fashion, two of ten classes", _USUAL, True, domains=two),
        _situation("fashion, LayerNorm, γ 0.1", vit),
        _situation("fashion, LayerNorm, iid", vit, **IID),
    ]


def _cifar() -> list[Situation]:
    ten = replace(_USUAL, dataset="cifar10-c", model="resnet20@weights/resnet20-12fca82f.th")
    grouped = replace(ten, model="resnet26_gn@weights/cifar10_rn26_gn.pth")
    hundred = replace(ten, dataset="cifar100-c", model="resnet56_proj@weights/cifar100_resnet56-f2eff4c8.pt")
    return [
        *_everywhere("cifar10", ten, False, "ship"),
        _situation("cifar10, GroupNorm, γ 0.1", grouped),
        _situation("cifar10, GroupNorm, iid", grouped, **IID),
        *(_situation(f"cifar100, γ {gamma:g}", hundred, gamma=gamma) for gamma in (1e-1, 1e-4)),
        _situation("cifar100, iid", hundred, **IID),
    ]


def _photographs() -> list[Situation]:
    thousand = replace(_USUAL, dataset="imagenet-c", model="mobilenet_v2@weights/mobilenet_v2-b0353104.pth")
    thousand = replace(thousand, domains=("clean", "fog", "jpeg_compression"), images=0)
    cars = replace(_USUAL, dataset="pklot", model="resnet20@models/pklot-pucpr-sunny/resnet20.safetensors")
    cars = replace(cars, image_size=32, images=0)
    recorded = ("pucpr:cloudy+shaded", "ufpr04", "ufpr05")
    return [
        _situation("imagenet slice, γ 0.1", thousand),
        _situation("imagenet slice, iid", thousand, **IID),
        *(_situation(f"parking, {name}", cars, domains=(name,)) for name in ("ufpr04-cloudy", "ufpr05-cloudy")),
        _situation("parking, recorded", cars, domains=recorded, stream="recorded"),
    ]


SITUATIONS = (*_fashion(), *_cifar(), *_photographs())
