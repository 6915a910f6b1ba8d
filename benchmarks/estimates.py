"""How well GRoTTA+ knows, without labels, whether it helps: its estimates beside the truth, on the development streams.

Example:
    python -m benchmarks.estimates --networks fashion_resnet8,resnet20@weights/resnet20-12fca82f.th

Every 512 images, ``estimated_accuracy`` and ``source_accuracy`` (``adapter.last.extra``) are compared with how many of
these images the answers, and the untouched model, had right; and so is the usual estimate of a model's accuracy, its
mean confidence, of the untouched model.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from torch import nn

import grotta
from benchmarks.development import NETWORKS, SITUATIONS, Situation, batches
from grotta.bench.inputs.network import load_network

WINDOW = 512
TELLING = 1.0  # points: of a smaller gain, the sign is asked of nobody
GARBAGE = ("noise", "blank")


@dataclass(frozen=True)
class Window:
    """Shares of some images in per cent: what was right, and what was thought to be."""

    right: float
    source_right: float
    estimate: float
    source_estimate: float
    source_confidence: float

    @property
    def gain(self) -> float:
        return self.right - self.source_right

    @property
    def estimated_gain(self) -> float:
        return self.estimate - self.source_estimate


def windows(model: nn.Module, dataset: str, situation: Situation, method: str = "grotta+") -> list[Window]:
    """All whole windows of a stream; garbage has no right answers and is left out."""
    adapter, source = grotta.create(method, model), grotta.create("source", model)
    found: list[Window] = []
    counts, images_seen = np.zeros(3), 0
    for domain, images, labels in batches(dataset, situation):
        answers, said = adapter(images).argmax(1), source(images)
        if domain in GARBAGE:
            continue
        confidence, source_answers = said.max(1)
        counts += [(answers == labels).sum(), (source_answers == labels).sum(), confidence.sum()]
        images_seen += len(labels)
        if images_seen >= WINDOW:
            right, source_right, sure = 100 * counts / images_seen
            extra = {name: 100 * float(value) for name, value in adapter.last.extra.items()}
            found.append(Window(right, source_right, extra["estimated_accuracy"], extra["source_accuracy"], sure))
            counts, images_seen = np.zeros(3), 0
    return found


def summary(found: list[Window]) -> dict[str, float]:
    """How far the estimates are off, in points, and how well they tell whether adaptation helps."""
    gain, estimated = (np.array([getattr(one, name) for one in found]) for name in ("gain", "estimated_gain"))
    telling = np.abs(gain) > TELLING
    return {
        "windows": len(found),
        "gain": float(gain.mean()),
        "estimated gain is off by": float(np.abs(estimated - gain).mean()),
        "correlation of the two": float(np.corrcoef(estimated, gain)[0, 1]),
        "right sign, % of telling windows": 100 * float((np.sign(estimated) == np.sign(gain))[telling].mean()),
        "harm (more than a point worse), windows": int((gain < -TELLING).sum()),
        "of these, seen as harm": int(((estimated < 0) & (gain < -TELLING)).sum()),
        "own accuracy is off by": float(np.mean([abs(one.estimate - one.right) for one in found])),
        "source's accuracy is off by": float(np.mean([abs(one.source_estimate - one.source_right) for one in found])),
        "source's confidence is off by": float(
            np.mean([abs(one.source_confidence - one.source_right) for one in found])
        ),
    }


def main() -> None:
    """Print one column per network, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="fashion_resnet8", help="NAME or NAME@WEIGHTS, with commas between them")
    parser.add_argument("--streams", default=";".join(SITUATIONS), help="names, with semicolons between them")
    options = parser.parse_args()
    columns: dict[str, dict[str, float]] = {}
    everywhere: list[Window] = []
    for network in options.networks.split(","):
        architecture = network.partition("@")[0]
        data = grotta.data.load(NETWORKS[architecture], domains=["clean"])
        model = load_network(network, data.num_classes)
        found: list[Window] = []
        for name in options.streams.split(";"):
            found += windows(model, NETWORKS[architecture], SITUATIONS[name])
        columns[architecture] = summary(found)
        everywhere += found
    columns["all"] = summary(everywhere)
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in columns["all"]:
        print(f"| {name} | {' | '.join(f'{one[name]:.4g}' for one in columns.values())} |")


if __name__ == "__main__":
    main()
