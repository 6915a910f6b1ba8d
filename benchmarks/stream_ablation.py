"""What each part of ``output="stream"`` is worth: error on streams of cached predictions of one network.

Example:
    python -m benchmarks.stream_ablation --weights resnet20-12fca82f.th --cache runs/stream_ablation.pt

The network is not adapted. Its predictions on the odd-numbered test images of CIFAR-10, under three corruptions, are
computed once; everything after that takes seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

import grotta
from grotta.outputs import OutputAdaptation, StreamPrior, create
from grotta.streams import ptta

CORRUPTIONS = ("shot_noise", "contrast", "frost")
CLASSES = 10


class Unchecked(StreamPrior):
    """Readers weighed by held-out evidence alone, whichever answers they overrule."""

    def _weigh(self, state: Mapping[str, Tensor]) -> Tensor:
        return state["answer_evidence"].softmax(0)


class Undecided(StreamPrior):
    """All readers count alike."""

    def _weigh(self, state: Mapping[str, Tensor]) -> Tensor:
        return torch.full_like(state["answer_evidence"], 1 / len(self.temperatures))


VARIANTS: dict[str, Callable[[], OutputAdaptation]] = {
    "none": lambda: create(None, CLASSES),
    **{f"T = {t}": (lambda t=t: StreamPrior(CLASSES, temperatures=(float(t),))) for t in (1, 2, 3, 4)},  # type: ignore[misc]
    "no debiasing": lambda: StreamPrior(CLASSES, speed=0.0),
    "all readers alike": lambda: Undecided(CLASSES),
    "evidence alone": lambda: Unchecked(CLASSES),
    "full": lambda: StreamPrior(CLASSES),
}


def predictions(weights: str, cache: Path, limit: int) -> tuple[list[Tensor], list[Tensor]]:
    """Probabilities and labels of the first ``limit`` odd-numbered images of each corruption."""
    if cache.is_file():
        known: tuple[list[Tensor], list[Tensor]] = torch.load(cache)
        return known
    model = grotta.models.create_model("resnet20", weights=weights)
    data = grotta.data.load("cifar10-c", domains=CORRUPTIONS)
    probs, labels = [], []
    with torch.inference_mode():
        for name in CORRUPTIONS:
            odd = range(1, 2 * limit, 2)
            pieces = [odd[i : i + 250] for i in range(0, len(odd), 250)]
            probs.append(torch.cat([model(data.images(name, p).float() / 255).softmax(1) for p in pieces]))
            labels.append(torch.as_tensor(data.labels(name))[list(odd)])
    cache.parent.mkdir(parents=True, exist_ok=True)
    torch.save((probs, labels), cache)
    return probs, labels


def error(adaptation: OutputAdaptation, probs: list[Tensor], labels: list[Tensor], gamma: float, size: int) -> float:
    """Per cent of wrong answers on a stream of all domains, one after the other."""
    stream = ptta([part.numpy() for part in labels], CLASSES, gamma)
    said = torch.cat([part[torch.as_tensor(order)] for part, order in zip(probs, stream.indices)])
    true = torch.cat([part[torch.as_tensor(order)] for part, order in zip(labels, stream.indices)])
    none = torch.zeros(0)
    answers = torch.cat([adaptation(batch, none).probs.argmax(1) for batch in said.split(size)])
    return 100 * (answers != true).double().mean().item()


def main() -> None:
    """Print one row per variant, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="published weights of the CIFAR-10 ResNet-20")
    parser.add_argument("--cache", type=Path, default=Path("runs/stream_ablation.pt"))
    parser.add_argument("--images", type=int, default=5000, help="per corruption")
    parser.add_argument("--gammas", default="1e-1,1e-2,1e-4,10")
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    probs, labels = predictions(options.weights, options.cache, options.images)
    gammas = [float(gamma) for gamma in options.gammas.split(",")]
    print(f"| | {' | '.join(f'gamma {gamma:g}' for gamma in gammas)} |\n|---|{'---|' * len(gammas)}")
    for name, make in VARIANTS.items():
        errors = [error(make(), probs, labels, gamma, options.batch_size) for gamma in gammas]
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in errors)} |", flush=True)


if __name__ == "__main__":
    main()
