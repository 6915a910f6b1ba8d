"""Answers read in the light of their neighbours in time: the arithmetic behind ``grotta.outputs`` ``"stream"``."""

from typing import NamedTuple

import torch
from torch import Tensor

_TINY = 1e-12


class Neighbours(NamedTuple):
    """How much each of n remembered samples and B new ones says about each new one; (S, B, n + B) for S time scales."""

    around: Tensor  # both directions, its own answer left out; rows sum to less than 1, the rest is for the base mix
    before: Tensor  # the past alone


def time_neighbours(past: int, batch: int, scales: Tensor, base: float = 1.0) -> Neighbours:
    """Kernel weights exp(-distance / scale), with ``base`` samples' worth left for a mix that does not change.

    >>> weights = time_neighbours(past=1, batch=2, scales=torch.tensor([1.0]))
    >>> weights.around[0, 0], weights.before[0, 0]  # of the first new sample: the past one, itself, the one after it
    (tensor([0.2119, 0.0000, 0.2119]), tensor([0.2689, 0.0000, 0.0000]))
    """
    position = torch.arange(past + batch, device=scales.device, dtype=scales.dtype)
    distance = position[past:, None] - position[None, :]
    kernel = torch.exp(-distance.abs() / scales[:, None, None]) * (distance != 0)
    causal = kernel * (distance > 0)
    return Neighbours(
        kernel / (kernel.sum(2, keepdim=True) + base),
        causal / (causal.sum(2, keepdim=True) + base),
    )


def local_mix(weights: Tensor, trust: Tensor, labels: Tensor, base: Tensor) -> Tensor:
    """The mix of labels around each new sample: (B, R, C) for R readers.

    Args:
        weights: (S, B, n), as :func:`time_neighbours` gives them.
        trust: (R, 1 + S), rows sum to 1: of the mix that does not change, then of each time scale.
        labels: (n, R, C), of the remembered and the new samples.
        base: (R, C), the mix that does not change.
    """
    scales, batch, n = weights.shape
    _, readers, classes = labels.shape
    local = (weights.reshape(scales * batch, n) @ labels.reshape(n, readers * classes)).view(
        scales, batch, readers, classes
    )
    rest = 1 - weights.sum(2)  # (S, B), what is left for the base
    on_base = trust[:, 0] + torch.einsum("rs,sb->br", trust[:, 1:], rest)
    return torch.einsum("rs,sbrc->brc", trust[:, 1:], local) + on_base[:, :, None] * base


def settle_labels(
    likelihood: Tensor, weights: Tensor, trust: Tensor, past: Tensor, base: Tensor, rounds: int
) -> Tensor:
    """Labels Z (B, R, C) with Z_i proportional to likelihood_i times the mix that the Z around i make.

    A round has the form of a step of expectation maximisation for the locally weighted mix: given Z, the kernel mean is
    the mix with the largest local likelihood; given the mix, Z is the posterior. It is exactly that where all samples
    share one mix; where mixes differ, sample j is read with its own mix and not with that of its neighbour i.
    """
    # What does not change from round to round is computed once: one kernel per reader, the past, and the base.
    kernel = torch.einsum("rs,sbn->rbn", trust[:, 1:], weights)
    on_base = trust[:, :1] + torch.einsum("rs,sb->rb", trust[:, 1:], 1 - weights.sum(2))
    known = on_base[:, :, None] * base[:, None] + kernel[:, :, : len(past)] @ past.transpose(0, 1)
    kernel, likelihood = kernel[:, :, len(past) :].contiguous(), likelihood.transpose(0, 1)
    labels = normalised(likelihood)
    for _ in range(rounds):
        labels = normalised(likelihood * torch.baddbmm(known, kernel, labels))
    return labels.transpose(0, 1)


def scale_evidence(likelihood: Tensor, weights: Tensor, raw: Tensor, base: Tensor) -> Tensor:
    """How many nats better the neighbours' unrefined answers predict an answer than the base mix: (R, S), summed.

    Refined answers would prove themselves.
    """
    scales, batch, n = weights.shape
    _, readers, classes = raw.shape
    local = (weights.reshape(scales * batch, n) @ raw.reshape(n, readers * classes)).view(
        scales, batch, readers, classes
    )
    mix = local + (1 - weights.sum(2))[:, :, None, None] * base
    none = (likelihood * base).sum(2).clamp_min(_TINY).log()
    return ((likelihood * mix).sum(3).clamp_min(_TINY).log() - none).sum(1).T


def answer_evidence(mix: Tensor, answers: Tensor, confusion: Tensor) -> Tensor:
    """Log-likelihood (R,) of the network's ``answers`` (B,), given the mix of labels (B, R, C) before each of them.

    Args:
        mix: from the past alone.
        answers: class indices.
        confusion: (R, C, C), row y: how the network answers samples of label y; rows sum to 1.
    """
    columns = confusion[:, :, answers]  # (R, C, B)
    return torch.einsum("brc,rcb->br", mix, columns).clamp_min(_TINY).log().sum(0)


def normalised(x: Tensor) -> Tensor:
    """Rows that sum to 1."""
    return x / x.sum(-1, keepdim=True).clamp_min(_TINY)
