"""How much each sign of a reading's worth should count in GRoTTA+: three numbers, fitted on streams with labels.

Example:
    python -m benchmarks.fit_reliance --weights resnet20-12fca82f.th --images 1000

Only odd-numbered test images under shot noise, contrast and frost are used: CIFAR-10 with the published ResNet-20
and the bundled network, fashion with the bundled network; all classes
and two of them; independent, drifting and clustered labels; severity 5, 3 and none. The readings do not depend on the
three numbers, so each stream is run once; the share of wrong answers, made smooth, is then minimised over the numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import grotta
from grotta.methods.grotta_plus import GRoTTAPlus
from grotta.methods.step import Prediction
from grotta.streams import iid, ptta

CORRUPTIONS = ("shot_noise", "contrast", "frost")
NETWORKS = {"resnet20": "cifar10-c", "cifar10_resnet": "cifar10-c", "fashion_resnet8": "fashion-c"}


class Readings(NamedTuple):
    """What the readings said of a stream, batch by batch."""

    logs: list[Tensor]  # (B, 3, classes)
    signs: list[Tensor]  # (3, 3)
    labels: list[Tensor]  # (B,)


class Recorded(GRoTTAPlus):
    """The method, and what its readings said of the last batch."""

    def infer(self, inputs: Tensor) -> Prediction:
        """As the method does."""
        prediction = super().infer(inputs)
        self.said = prediction.extra.logs
        return prediction


def read(
    model: nn.Module, dataset: str, domains: Sequence[str], gamma: float | None, images: int, classes: int
) -> Readings:
    """Run a stream of ``images`` per domain; ``gamma`` None: labels are independent; ``classes``: the first n only."""
    data = grotta.data.load(dataset, domains=domains)
    kept = {}
    for name in domains:
        labels = np.asarray(data.labels(name))
        odd = np.arange(1, len(labels), 2)
        kept[name] = odd[labels[odd] < classes][: 2 * images]
    labels = [np.asarray(data.labels(name))[kept[name]] for name in domains]
    stream = iid(labels, data.num_classes) if gamma is None else ptta(labels, data.num_classes, gamma)
    adapter = Recorded(model, output=None)
    found = Readings([], [], [])
    for name, own, order in zip(domains, labels, stream.indices):
        for batch in torch.as_tensor(order[:images]).split(64):
            adapter(torch.as_tensor(data.images(name, kept[name][batch.numpy()])))
            found.logs.append(adapter.said)
            found.signs.append(adapter.record.counts().signs())
            found.labels.append(torch.as_tensor(own[batch.numpy()]))
    return found


def pooled(counts: Tensor, readings: Readings) -> Tensor:
    """Log-probabilities of all images under the weights that ``counts`` gives."""
    weights = [(signs @ counts).softmax(0) for signs in readings.signs]
    return torch.cat([torch.einsum("e,bec->bc", w, logs) for w, logs in zip(weights, readings.logs)]).log_softmax(1)


def fit(streams: Sequence[Readings], steps: int = 150) -> Tensor:
    """The three numbers with the smallest smooth error, every stream counting alike."""
    counts = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([counts], lr=0.1)
    for _ in range(steps):
        errors = []
        for one in streams:
            sharp = (2 * pooled(counts, one)).softmax(1)
            errors.append(1 - sharp.gather(1, torch.cat(one.labels)[:, None]).mean())
        loss = torch.stack(errors).mean() + 1e-4 * counts.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return counts.detach()


def main() -> None:
    """Print the three numbers, and the error of each stream with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="published weights of the CIFAR-10 ResNet-20")
    parser.add_argument("--images", type=int, default=1000, help="per domain")
    options = parser.parse_args()
    streams: dict[str, Readings] = {}
    for network, dataset in NETWORKS.items():
        weights = options.weights if network == "resnet20" else "bundled"
        model = grotta.models.create_model(network, weights=weights)
        for severity, domains in (("5", CORRUPTIONS), ("3", [f"{c}@3" for c in CORRUPTIONS]), ("clean", ["clean"])):
            for gamma in (None, 1e-1, 1e-4):
                for classes in (10, 2):
                    shift = "independent" if gamma is None else f"gamma {gamma:g}"
                    name = f"{network}, severity {severity}, {shift}, {classes} classes"
                    streams[name] = read(model, dataset, domains, gamma, options.images, classes)
                    print("read:", name, flush=True)
    counts = fit(list(streams.values()))
    print("information, confidence, constancy:", [round(c, 2) for c in counts.tolist()])
    for name, one in streams.items():
        wrong = (pooled(counts, one).argmax(1) != torch.cat(one.labels)).double().mean()
        print(f"{100 * wrong:5.1f}  {name}")


if __name__ == "__main__":
    main()
