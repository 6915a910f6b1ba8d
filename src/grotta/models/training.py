"""Training of source models: seeded, resumable, one function.

Everything an epoch draws comes from a generator seeded by ``(recipe.seed, epoch)``, so a checkpoint needs no
generator state and a resumed run repeats the uninterrupted one bit by bit (same machine, same thread count).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grotta._check import check_at_least, check_between, check_flag, check_seed, check_whole
from grotta.models.checkpoint import read_checkpoint, write_checkpoint
from grotta.models.weights import copy_state


class Images(Protocol):
    """Images by index: a uint8 tensor (n, 3, H, W), or anything that gives such a batch for an index tensor."""

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """The images at ``indices``, uint8 (len(indices), 3, H, W)."""
        ...


@dataclass(frozen=True)
class Recipe:
    """How a source model is trained: SGD with Nesterov momentum under a triangular learning rate.

    Args:
        epochs: passes over the data.
        batch_size: images per step; the incomplete last batch of an epoch is left out.
        lr: the learning rate at its peak; it rises linearly from 0 over the ``warmup`` share of all steps and
            falls linearly to 0 at the end.
        momentum: Nesterov momentum.
        weight_decay: L2 penalty on every parameter.
        label_smoothing: of the cross-entropy.
        shift: images are shifted by up to this share of their side and padded with zeros (0.125: four pixels of 32).
        flip: mirror each image left to right with probability one half.
        seed: of the initial weights, the order and the augmentation.
    """

    epochs: int = 15
    batch_size: int = 128
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    label_smoothing: float = 0.0
    warmup: float = 0.25
    shift: float = 0.125
    flip: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            check_whole(name, getattr(self, name), at_least=1)
        for name in ("lr", "momentum", "weight_decay"):
            check_at_least(name, getattr(self, name), 0)
        for name in ("label_smoothing", "warmup", "shift"):
            check_between(name, getattr(self, name), 0, 1, below=True)
        check_flag("flip", self.flip)
        check_seed(self.seed)


@dataclass(frozen=True)
class EpochResult:
    """What one epoch gave: mean training loss, accuracy on the evaluation images, seconds spent."""

    epoch: int
    loss: float
    accuracy: float
    seconds: float


def learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """Triangular schedule: the rate of ``step`` (from 0) among ``total``.

    >>> [round(learning_rate(Recipe(lr=1.0, warmup=0.5), step, 4), 2) for step in range(4)]
    [0.5, 1.0, 0.67, 0.33]
    """
    rise = max(1, round(recipe.warmup * total))
    if step < rise:
        return recipe.lr * (step + 1) / rise
    return recipe.lr * (total - step) / (total - rise + 1)


def shift_and_flip(images: Tensor, recipe: Recipe, generator: torch.Generator) -> Tensor:
    """Move each image by its own whole-pixel offset and mirror half of them; (B, 3, H, W) uint8 in and out.

    >>> images = torch.arange(12, dtype=torch.uint8).view(1, 3, 2, 2)
    >>> same = shift_and_flip(images, Recipe(shift=0.0, flip=False), torch.Generator())
    >>> torch.equal(same, images)
    True
    """
    count, _, height, width = images.shape
    pad_rows, pad_columns = round(recipe.shift * height), round(recipe.shift * width)
    top = torch.randint(0, 2 * pad_rows + 1, (count, 1), generator=generator)
    left = torch.randint(0, 2 * pad_columns + 1, (count, 1), generator=generator)
    mirrored = torch.rand(count, 1, generator=generator) < 0.5 * recipe.flip
    rows = top + torch.arange(height)
    columns = torch.where(mirrored, torch.arange(width - 1, -1, -1), torch.arange(width)) + left
    padded = F.pad(images, (pad_columns, pad_columns, pad_rows, pad_rows))
    # The channel axis comes out last, which is the fastest memory order for convolutions.
    moved = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return moved.permute(0, 3, 1, 2)


def batches(count: int, recipe: Recipe, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled indices in full batches; one short batch if there are too few."""
    order = torch.randperm(count, generator=generator)
    full = count // recipe.batch_size * recipe.batch_size or count
    yield from torch.split(order[:full], recipe.batch_size)


def accuracy(model: nn.Module, images: Images, labels: Tensor, batch_size: int = 250) -> float:
    """Share of ``images`` whose largest logit of ``model`` (in evaluation mode) is at ``labels`` (n,).

    An image with a logit that is not a number counts as wrong.
    """
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    right = 0
    with torch.inference_mode():
        for indices in torch.split(torch.arange(len(labels)), batch_size):
            logits = model(to_float(images[indices], device))
            guesses = logits.argmax(dim=1).masked_fill(logits.isnan().any(dim=1), -1)
            right += int((guesses.cpu() == labels[indices]).sum())
    model.train(was_training)
    return right / len(labels)


def to_float(images: Tensor, device: torch.device) -> Tensor:
    """uint8 ``images`` as channels-last float in [0, 1] on ``device``."""
    return images.to(device).contiguous(memory_format=torch.channels_last).float().div_(255)


def train(
    model: nn.Module,
    images: Images,
    labels: Tensor,
    evaluation: tuple[Images, Tensor],
    recipe: Recipe,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    title: str = "",
    on_epoch: Callable[[EpochResult], None] = lambda result: None,
    on_step: Callable[[int, int], None] = lambda step, total: None,
) -> list[EpochResult]:
    """Train ``model`` in place and return one result per epoch; the last epoch's weights are the outcome.

    Args:
        model: from float (B, 3, H, W) in [0, 1] to logits; its present weights are the start.
        images: uint8 (n, 3, H, W), a tensor or anything indexed like one; ``labels``: int64 (n,).
        evaluation: images and labels whose accuracy is measured after each epoch; they do not influence training.
        recipe: the settings.
        checkpoint: file rewritten (atomically) after each epoch; with ``resume`` training continues from it.
        title: what is trained on what, in words; a checkpoint with another title is refused, and one of images
            of another number or shape.
        on_epoch: called with each epoch's result; ``on_step`` with (steps done, steps in all).

    Raises:
        ValueError: the training diverged (a loss or weights that are not finite), or cannot be resumed; the
            checkpoint stays as it was.
    """
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(
        model.parameters(), 0.0, recipe.momentum, weight_decay=recipe.weight_decay, nesterov=recipe.momentum > 0
    )
    data = {
        "training images": len(labels),
        "measured images": len(evaluation[1]),
        "image shape": list(images[torch.arange(1)].shape[1:]),
        "largest label": int(labels.max()),
    }
    kept = None if checkpoint is None else _Checkpoint(checkpoint, model, optimizer, recipe, title, data)
    history = kept.restore() if kept is not None and resume and kept.path.exists() else []
    for epoch in range(len(history), recipe.epochs):
        started = time.perf_counter()
        loss = _run_epoch(model, images, labels, optimizer, recipe, epoch, on_step)
        _refuse_divergence(model, loss, recipe, epoch)
        scored = accuracy(model, *evaluation)
        history.append(EpochResult(epoch, loss, scored, time.perf_counter() - started))
        if kept is not None:
            kept.store(history)
        on_epoch(history[-1])
    return history


def _run_epoch(
    model: nn.Module,
    images: Images,
    labels: Tensor,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    epoch: int,
    on_step: Callable[[int, int], None],
) -> float:
    """Train for one epoch; returns the mean loss."""
    device = next(model.parameters()).device
    steps = max(1, len(labels) // recipe.batch_size)
    total = recipe.epochs * steps
    generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    model.train()
    losses: list[Tensor] = []
    for step, indices in enumerate(batches(len(labels), recipe, generator), start=epoch * steps):
        batch = to_float(shift_and_flip(images[indices], recipe, generator), device)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step, total)
        optimizer.zero_grad()
        targets = labels[indices].to(device)
        loss = F.cross_entropy(model(batch), targets, label_smoothing=recipe.label_smoothing)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.detach())
        on_step(step + 1, total)
    return float(torch.stack(losses).mean())


def _refuse_divergence(model: nn.Module, loss: float, recipe: Recipe, epoch: int) -> None:
    if not math.isfinite(loss) or not all(tensor.isfinite().all() for tensor in model.state_dict().values()):
        raise ValueError(
            f"lr must be smaller than {recipe.lr}: the training diverged in epoch {epoch + 1} (loss {loss}, expected a "
            "finite one and finite weights)"
        )


@dataclass(frozen=True)
class _Checkpoint:
    """The file that a training is resumed from; one of another training, of other data or settings is refused."""

    path: Path
    model: nn.Module
    optimizer: torch.optim.Optimizer
    recipe: Recipe
    title: str
    data: Mapping[str, Any]

    def store(self, history: Sequence[EpochResult]) -> None:
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "recipe": asdict(self.recipe),
            "title": self.title,
            "data": dict(self.data),
            "history": [asdict(result) for result in history],
        }
        write_checkpoint(self.path, state)

    def restore(self) -> list[EpochResult]:
        state = read_checkpoint(self.path)
        if self.title != state["title"]:
            raise ValueError(f"{self.path} is of another training ({state['title']}), not of this one ({self.title})")
        if changes := _differences(state["data"], self.data):
            raise ValueError(f"{self.path} was written with other data ({changes}); use the same, or start over")
        if changes := _differences(state["recipe"], asdict(self.recipe)):
            raise ValueError(f"{self.path} was written by another recipe ({changes}); use the same one, or start over")
        copy_state(self.model, state["model"], f"{self.path} does not fit {type(self.model).__name__}")
        self.optimizer.load_state_dict(state["optimizer"])
        return [EpochResult(**result) for result in state["history"]]


def _differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    changed = [name for name in now if now[name] != there.get(name)]
    return ", ".join(f"{name}: {there.get(name)} there, {now[name]} now" for name in changed)
