"""The streams that settings of GRoTTA+ and ``output="stream"`` were chosen on, and the error of any method on them.

Example:
    python -m benchmarks.development --networks fashion_resnet8,resnet20@weights/resnet20-12fca82f.th
    python -m benchmarks.development --methods "ods,grotta+ train=False" --streams "gamma 0.1;batch 1"

Only odd-numbered test images under shot noise, contrast and frost are used, and the same images without corruption:
whatever is reported elsewhere is on other corruptions, other images or other data. One row per stream. Files of weights
are looked for as everywhere, here or in the data roots.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

import grotta
from grotta.bench.inputs.network import load_network
from grotta.streams import iid, ptta

CORRUPTIONS = ("shot_noise", "contrast", "frost")
NETWORKS = {
    "fashion_resnet8": "fashion-c",
    "fashion_vit": "fashion-c",
    "resnet20": "cifar10-c",
    "resnet26_gn": "cifar10-c",
    "mobilenet_v2": "imagenet-c",
}
CONFUSED = {"fashion-c": (0, 6), "cifar10-c": (3, 5)}  # T-shirts and shirts, cats and dogs
ONE = {"fashion-c": "Bag", "cifar10-c": "ship"}


@dataclass(frozen=True)
class Situation:
    """A stream; ``gamma`` None: labels are independent; ``pair``: two classes alone."""

    domains: Sequence[str] = CORRUPTIONS
    gamma: float | None = 0.1
    images: int = 1500
    batch: int = 64
    pair: bool = False


def _severity(level: int) -> list[str]:
    return [f"{name}@{level}" for name in CORRUPTIONS]


_USUAL = Situation()
_SHORT = replace(_USUAL, domains=[*CORRUPTIONS, *_severity(4), *_severity(3)], images=500)
_CLEAN = replace(_USUAL, domains=["clean"], images=2000)
_RETURNS = [name if k == 1 else f"{name}#{k}" for k in range(1, 8) for name in CORRUPTIONS]
SITUATIONS = {
    "independent": replace(_USUAL, gamma=None),
    **{f"gamma {gamma:g}": replace(_USUAL, gamma=gamma) for gamma in (10.0, 1.0, 0.1, 0.01, 0.0001)},
    "clean, independent": replace(_CLEAN, gamma=None),
    "clean": _CLEAN,
    "severity 1": replace(_USUAL, domains=_severity(1), images=1000),
    "severity 3, independent": replace(_USUAL, domains=_severity(3), gamma=None, images=1000),
    "severity 3": replace(_USUAL, domains=_severity(3), images=1000),
    "two classes": replace(_USUAL, images=1000, pair=True),
    "two classes, independent": replace(_USUAL, gamma=None, images=1000, pair=True),
    "domains of 500": _SHORT,
    "domains of 500, independent": replace(_SHORT, gamma=None),
    "batch 1": replace(_USUAL, domains=CORRUPTIONS[1:], images=800, batch=1),
    "batch 16": replace(_USUAL, images=1000, batch=16),
    "batch 256": replace(_USUAL, batch=256),
    "seven returns": replace(_USUAL, domains=_RETURNS, images=300),
    "garbage between": replace(
        _USUAL, domains=["shot_noise", "noise", "blank", "contrast:{one}", "contrast", "frost"], images=800
    ),
}


def batches(dataset: str, situation: Situation) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Domain, images and labels of each batch."""
    domains = [name.format(one=ONE.get(dataset, "")) for name in situation.domains]
    data = grotta.data.load(dataset, domains=domains)
    kept, labels = [], []
    for name in domains:
        own = np.asarray(data.labels(name))
        odd = np.arange(1, len(own), 2)
        kept.append(odd[np.isin(own[odd], CONFUSED[dataset])] if situation.pair else odd)
        labels.append(own[kept[-1]])
    gamma = situation.gamma
    stream = iid(labels, data.num_classes) if gamma is None else ptta(labels, data.num_classes, gamma)
    for name, where, own, order in zip(domains, kept, labels, stream.indices):
        for batch in torch.tensor(order[: situation.images]).split(situation.batch):
            yield name, torch.as_tensor(data.images(name, where[batch.numpy()])), torch.as_tensor(own[batch.numpy()])


def error(method: str, model: nn.Module, dataset: str, situation: Situation) -> float:
    """Per cent of wrong answers, mean over domains; garbage does not count.

    ``method`` is a name, with a preset and options behind it, as in ``"grotta+ fast"`` or ``"grotta+ train=False"``.
    """
    name, *words = method.split()
    options = {key: ast.literal_eval(value) for key, found, value in (word.partition("=") for word in words) if found}
    preset = next((word for word in words if "=" not in word), "paper")
    adapter = grotta.create(name, model, preset=preset, **options)
    wrong: dict[str, list[float]] = {}
    for domain, images, labels in batches(dataset, situation):
        answers = adapter(images).argmax(1)
        if domain not in ("noise", "blank") and ":" not in domain:
            wrong.setdefault(domain, []).extend((answers != labels).double().tolist())
    return 100 * float(np.mean([np.mean(one) for one in wrong.values()]))


def main() -> None:
    """Print one row per stream, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="fashion_resnet8", help="NAME or NAME@WEIGHTS, with commas between them")
    parser.add_argument("--methods", default="source,bn,tent,lame,note,rotta,grotta,ods,grotta+")
    parser.add_argument("--streams", default=";".join(SITUATIONS), help="names, with semicolons between them")
    options = parser.parse_args()
    methods = options.methods.split(",")
    print(f"| | {' | '.join(methods)} |\n|---|{'---:|' * len(methods)}")
    for network in options.networks.split(","):
        architecture = network.partition("@")[0]
        data = grotta.data.load(NETWORKS[architecture], domains=["clean"])
        model = load_network(network, data.num_classes)
        for name in options.streams.split(";"):
            errors = [error(method, model, NETWORKS[architecture], SITUATIONS[name]) for method in methods]
            print(f"| {architecture}, {name} | {' | '.join(f'{value:.1f}' for value in errors)} |", flush=True)


if __name__ == "__main__":
    main()
