"""What the benchmarks run on: networks with plausible activations, and images that they tell apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import grotta
from grotta.methods.fair_training import CALM, FairTraining
from grotta.methods.grotta_plus import READINGS, GRoTTAPlus


@dataclass(frozen=True)
class Subject:
    """A network and the batches of one size that it is given in turn."""

    name: str
    model: nn.Module
    batches: list[Tensor]  # uint8 (B, 3, H, W)

    @property
    def batch_size(self) -> int:
        return len(self.batches[0])

    def forward(self, memory_format: torch.memory_format) -> Callable[[], Tensor]:
        """One plain evaluation of the source model on a float batch that is ready for it: the unit of all steps."""
        x = (self.batches[0].float() / 255).contiguous(memory_format=memory_format)

        def run() -> Tensor:
            with torch.inference_mode():
                return self.model(x)

        return run

    def step(self, method: str, **options: object) -> tuple[grotta.Adapter, Callable[[], Tensor]]:
        """An adapter, and a function that gives it the next batch."""
        adapter = grotta.create(method, self.model, **options)
        stream = cycle(self.batches)
        return adapter, lambda: adapter(next(stream))

    def period(self, method: str, **options: object) -> tuple[Callable[[], object], int]:
        """As many steps as there are from one update to the next, or from one probe, and their number."""
        adapter, step = self.step(method, **options)
        if isinstance(adapter, GRoTTAPlus):
            if adapter.trainer is not None:
                train_always(adapter.trainer)
            if adapter.experts < len(READINGS):
                return lambda: [step() for _ in range(adapter.probe_every)], adapter.probe_every
        every = getattr(adapter, "update_every", 1)
        length = every if method == "grotta" else -(-every // self.batch_size)  # the others count samples
        return lambda: [step() for _ in range(length)], length


def train_always(trainer: FairTraining) -> None:
    """Let it train on every batch, as on labels in random order: what it costs at most."""
    step, even = trainer.step, torch.tensor([1 / len(trainer.block), 1.0])

    def fair(inputs: Tensor, clustered: float = 0.0) -> Tensor | None:
        trainer.calm.fill_(CALM)
        trainer.overruled.zero_()
        trainer.alike.copy_(even)
        return step(inputs)

    trainer.step = fair  # type: ignore[method-assign]


def resnet20(batch_size: int = 64, num_classes: int = 10) -> Subject:
    """The CIFAR ResNet-20."""
    model = grotta.models.create_model("resnet20", num_classes=num_classes)
    return _subject(f"ResNet-20, B {batch_size}", model, batch_size, size=32)


def resnet50(batch_size: int) -> Subject:
    """The ImageNet ResNet-50 at 224 x 224."""
    return _subject(f"ResNet-50, B {batch_size}", grotta.models.create_model("resnet50"), batch_size, size=224)


def small(batch_size: int) -> Subject:
    """The network for 28-pixel clothes: small, so that long streams can be afforded."""
    return _subject("small", grotta.models.create_model("fashion_resnet8"), batch_size, size=32)


def images(count: int, size: int, seed: int = 0) -> Tensor:
    """Random pictures of a few large blobs and some noise, uint8 (count, 3, size, size)."""
    generator = torch.Generator().manual_seed(seed)
    blobs = F.interpolate(torch.rand(count, 3, 4, 4, generator=generator), size=size, mode="bicubic")
    noise = torch.rand(count, 3, size, size, generator=generator)
    return (blobs * 230 + noise * 25).clamp(0, 255).to(torch.uint8)


def _subject(name: str, model: nn.Module, batch_size: int, size: int, batches: int = 4) -> Subject:
    _settle(model, images(64 if size < 100 else 16, size, seed=99).float() / 255)
    return Subject(name, model.eval(), [images(batch_size, size, seed) for seed in range(batches)])


@torch.no_grad()
def _settle(model: nn.Module, x: Tensor) -> None:
    """Give an untrained network running statistics and spread its predictions over the classes.

    Predictions that are all the same would leave the memories of the methods all but empty, and their steps cheap.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()(x)
    for norm in norms:
        norm.momentum = 0.1
    logits = model.eval()(x)
    classifier = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    deviation = logits.std(0).clamp_min(1e-6)
    classifier.weight.div_(deviation[:, None] / 3)
    classifier.bias.sub_(logits.mean(0)).div_(deviation / 3)
