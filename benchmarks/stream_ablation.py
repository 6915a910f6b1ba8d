"""What each part of ``output="stream"`` is worth: error on streams of cached predictions of one network.

Example:
    python -m benchmarks.stream_ablation --network resnet26_gn --weights cifar10_rn26_gn.pth

The network is not adapted. Its predictions on the odd-numbered test images of CIFAR-10, under three corruptions (or
those of ``--domains``), are computed once; everything after that takes seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

import grotta
from grotta.outputs import OutputAdaptation, StreamPrior, create
from grotta.streams import ptta

CORRUPTIONS = ("shot_noise", "contrast", "frost")
CLASSES = 10


class Unchecked(StreamPrior):
    """Readers weighed by what they predict alone, whichever answers they overrule."""

    def _read_evidence(self, state: Mapping[str, Tensor]) -> Tensor:
        return super()._read_evidence({**state, "unsuspected": torch.zeros_like(state["unsuspected"])})


class Always(StreamPrior):
    """Answers are always read; those that came do not compete."""

    def _weigh(self, read: Tensor, nothing: Tensor) -> Tensor:
        return torch.cat((nothing, read.softmax(0)))


VARIANTS: dict[str, Callable[[], OutputAdaptation]] = {
    "none": lambda: create(None, CLASSES),
    **{f"T = {t}": (lambda t=t: StreamPrior(CLASSES, temperatures=(float(t),))) for t in (1, 2, 3, 4)},  # type: ignore[misc]
    "no debiasing": lambda: StreamPrior(CLASSES, speed=0.0),
    "whichever answers are overruled": lambda: Unchecked(CLASSES),
    "always read": lambda: Always(CLASSES),
    "full": lambda: StreamPrior(CLASSES),
}


def predictions(network: str, weights: str, domains: Sequence[str], limit: int) -> tuple[list[Tensor], list[Tensor]]:
    """Probabilities and labels of the first ``limit`` odd-numbered images of each domain."""
    model = grotta.models.create_model(network, weights=weights)
    data = grotta.data.load("cifar10-c", domains=domains)
    probs, labels = [], []
    with torch.inference_mode():
        for name in domains:
            odd = range(1, 2 * limit, 2)
            pieces = [odd[i : i + 250] for i in range(0, len(odd), 250)]
            probs.append(torch.cat([model(data.images(name, p).float() / 255).softmax(1) for p in pieces]))
            labels.append(torch.tensor(data.labels(name))[list(odd)])
    return probs, labels


def error(adaptation: OutputAdaptation, probs: list[Tensor], labels: list[Tensor], gamma: float, size: int) -> float:
    """Per cent of wrong answers on a stream of all domains, one after the other."""
    stream = ptta([part.numpy() for part in labels], CLASSES, gamma)
    said = torch.cat([part[order] for part, order in zip(probs, map(torch.tensor, stream.indices))])
    true = torch.cat([part[order] for part, order in zip(labels, map(torch.tensor, stream.indices))])
    none = torch.zeros(0)
    answers = torch.cat([adaptation(batch, none).probs.argmax(1) for batch in said.split(size)])
    return 100 * (answers != true).double().mean().item()


def main() -> None:
    """Print one row per variant, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet20")
    parser.add_argument("--weights", required=True, help="published weights of the network")
    parser.add_argument("--domains", default=",".join(CORRUPTIONS))
    parser.add_argument("--images", type=int, default=2000, help="per domain")
    parser.add_argument("--gammas", default="1e-1,1e-2,1e-4,10")
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args()
    probs, labels = predictions(options.network, options.weights, options.domains.split(","), options.images)
    gammas = [float(gamma) for gamma in options.gammas.split(",")]
    print(f"| | {' | '.join(f'gamma {gamma:g}' for gamma in gammas)} |\n|---|{'---|' * len(gammas)}")
    for name, make in VARIANTS.items():
        errors = [error(make(), probs, labels, gamma, options.batch_size) for gamma in gammas]
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in errors)} |", flush=True)


if __name__ == "__main__":
    main()
