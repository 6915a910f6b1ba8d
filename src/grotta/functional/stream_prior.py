"""Answers read in the light of their neighbours in time: the arithmetic behind ``grotta.outputs`` ``"stream"``."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_TINY = 1e-12


class Neighbours(NamedTuple):
    """How much the base mix, n remembered samples and B new ones say about each new one; (1 + S, B, 1 + n + B).

    Rows sum to 1, and their first entry is for the base mix. Before the S kernels comes one that is that mix alone.
    """

    around: Tensor  # both directions, its own answer left out
    before: Tensor  # the past alone
    both: Tensor  # one beside the other, (1 + S, 2, B, 1 + n + B)


def time_neighbours(past: int, batch: int, scales: Tensor, bases: Tensor | None = None) -> Neighbours:
    """Kernel weights exp(-distance / scale), with samples' worth left for a mix that does not change.

    There is a kernel for each of ``bases``, how many samples that mix is worth, and each of the ``scales``; without
    ``bases`` it is worth one.

    >>> weights = time_neighbours(past=1, batch=2, scales=torch.tensor([1.0]))
    >>> weights.around[1, 0]  # of the first new sample: the base mix, the past one, itself, the one after it
    tensor([0.5761, 0.2119, 0.0000, 0.2119])
    >>> weights.before[1, 0]
    tensor([0.7311, 0.2689, 0.0000, 0.0000])
    """
    position = torch.arange(past + batch, device=scales.device, dtype=scales.dtype)
    distance = position[past:, None] - position[None, :]
    kernel = torch.exp(-distance.abs() / scales[:, None, None]) * (distance != 0)
    causal = kernel * (distance > 0)
    left = torch.ones_like(scales[:1]) if bases is None else bases
    left = left[:, None, None, None]
    around, before = (one / (one.sum(2, keepdim=True) + left) for one in (kernel, causal))
    both = torch.stack([_with_base(one.flatten(0, 1)) for one in (around, before)], 1)
    return Neighbours(both[:, 0], both[:, 1], both)


def _with_base(kernels: Tensor) -> Tensor:
    """Kernels (S, B, n) with what they leave for the base mix before them, and a first one that leaves all."""
    kernels = torch.cat([torch.zeros_like(kernels[:1]), kernels])
    return torch.cat([1 - kernels.sum(2, keepdim=True), kernels], 2)


def trusted(weights: Tensor, trust: Tensor) -> Tensor:
    """One kernel (..., 1 + n) of all those (1 + S, ..., 1 + n) that :func:`time_neighbours` gives, as far as trusted.

    ``trust`` is (1 + S,) and sums to 1: of the mix that does not change, then of each time scale.
    """
    return (trust @ weights.flatten(1)).view(weights.shape[1:])


def local_mix(kernel: Tensor, labels: Tensor, base: Tensor) -> Tensor:
    """The mix of labels around each new sample: (B, R, C) for R readers.

    Args:
        kernel: (B, 1 + n), as :func:`trusted` gives it.
        labels: (n, R, C), of the remembered and the new samples.
        base: (R, C), the mix that does not change.
    """
    return (kernel @ torch.cat([base[None], labels]).flatten(1)).view(-1, *base.shape)


def settle_labels(likelihood: Tensor, kernel: Tensor, past: Tensor, base: Tensor, rounds: int) -> Tensor:
    """Labels Z (B, R, C) with Z_i proportional to likelihood_i times the mix that the Z around i make.

    A round has the form of a step of expectation maximisation for the locally weighted mix: given Z, the kernel mean is
    the mix with the largest local likelihood; given the mix, Z is the posterior. It is exactly that where all samples
    share one mix; where mixes differ, sample j is read with its own mix and not with that of its neighbour i.
    """
    known = torch.cat([base[None], past]).flatten(1)  # what does not change from round to round is computed once
    known, kernel = kernel[:, : len(known)] @ known, kernel[:, len(known) :]
    labels = normalised(likelihood)
    for _ in range(rounds):
        mix = torch.addmm(known, kernel, labels.flatten(1)).view_as(labels)
        labels = mix.mul_(likelihood)
        labels.div_(labels.sum(2, keepdim=True).clamp_min_(_TINY))
    return labels


def scale_evidence(likelihood: Tensor, weights: Tensor, raw: Tensor, base: Tensor) -> Tensor:
    """How many nats better the neighbours' unrefined answers predict an answer than the base mix: (S,), summed.

    Refined answers would prove themselves.

    Args:
        likelihood: (B, C).
        weights: (1 + S, B, 1 + n), as :func:`time_neighbours` gives them.
        raw: (n, C), unrefined answers of the remembered and the new samples.
        base: (C,), the mix that does not change.
    """
    told = likelihood @ torch.cat([base[None], raw]).T  # how likely an answer is where its label is drawn from another
    foreseen = (weights * told).sum(2).clamp_min(_TINY).log()
    return (foreseen[1:] - foreseen[0]).sum(1)


def below_best(probs: Tensor) -> Tensor:
    """By how much the logarithms of answers (B, C) are below the largest of each; (C, B).

    Samples stand side by side: a softmax over a few numbers that are neighbours in memory takes ten times as long.
    """
    logs = probs.T.contiguous().clamp_min(_TINY).log()
    return logs - logs.amax(0)


def heated(below: Tensor, heats: Tensor) -> Tensor:
    """Answers at temperatures ``heats`` (R,), given :func:`below_best` of them; (B, R, C).

    >>> heated(below_best(torch.tensor([[0.8, 0.2]])), torch.tensor([1.0, 2.0]))
    tensor([[[0.8000, 0.2000],
             [0.6667, 0.3333]]])
    """
    return (below / heats[:, None, None]).softmax(1).permute(2, 0, 1).contiguous()


def heated_confidence(below: Tensor, heats: Tensor) -> Tensor:
    """The largest of these probabilities alone; (R, B).

    >>> heated_confidence(below_best(torch.tensor([[0.8, 0.2]])), torch.tensor([1.0, 2.0]))
    tensor([[0.8000],
            [0.6667]])
    """
    return (below / heats[:, None, None]).exp().sum(1).reciprocal()


class Running(NamedTuple):
    """What a running mean is made of just before each of B answers."""

    answers: Tensor  # (B, B), how much of it is each of the answers
    before: Tensor  # (B, 1), how much is left of the mean before them


def running_weights(batch: int, span: float, like: Tensor) -> Running:
    """Those of a running mean of which a sample counts 1/e after ``span`` others; of the type of ``like``."""
    position = torch.arange(batch, device=like.device, dtype=like.dtype)
    distance = position[:, None] - position
    kernel = (1 - math.exp(-1 / span)) * torch.exp((1 - distance) / span) * (distance > 0)
    return Running(kernel, torch.exp(-position / span)[:, None])


def running_mix(before: Tensor, probs: Tensor, weights: Running) -> Tensor:
    """The running mean of answers just before each of them: (B, C).

    Args:
        before: (C,), the mean before the batch.
        probs: (B, C), the answers.
        weights: as :func:`running_weights` gives them.

    >>> probs = torch.tensor([[0.0, 1.0]] * 2)
    >>> running_mix(torch.tensor([1.0, 0.0]), probs, running_weights(2, 1.0, probs))
    tensor([[1.0000, 0.0000],
            [0.3679, 0.6321]])
    """
    return torch.addmm(weights.before * before, weights.answers, probs)


def answer_evidence(mix: Tensor, answers: Tensor, confusion: Tensor) -> Tensor:
    """Log-likelihood (R,) of the network's ``answers`` (B,), given the mix of labels (B, R, C) before each of them.

    Args:
        mix: from the past alone.
        answers: class indices.
        confusion: (R, C, C), row y: how the network answers samples of label y; rows sum to 1.
    """
    columns = confusion.index_select(2, answers).permute(2, 0, 1)  # (B, R, C)
    return (mix * columns).sum(2).clamp_min(_TINY).log().sum(0)


def matching_heat(target: Tensor, logs: Tensor, confidence: Tensor) -> Tensor:
    """The temperatures (R,) at which the mean confidence is ``target`` (R,), interpolated between some.

    Args:
        target: shares in [0, 1]; or sums, if those of ``confidence`` are sums over the same samples.
        logs: (G,), growing: the logarithms of these temperatures.
        confidence: (G,), the mean confidence at each of these, falling.

    >>> matching_heat(torch.tensor([0.7, 0.99]), torch.tensor([1.0, 4.0]).log(), torch.tensor([0.9, 0.5]))
    tensor([2., 1.])
    """
    above, below = confidence[:-1], confidence[1:]
    passed = ((above - target[:, None]) / (above - below).clamp_min(_TINY)).clamp(0, 1)  # of each step between heats
    return torch.addmv(logs[:1], passed, logs[1:] - logs[:-1]).exp()


def unsuspected(confidence: Tensor, kept: Tensor) -> Tensor:
    """By how many nats, summed (R,), the answers that a reader overrules are not those that the network was unsure of.

    If an answer is right with the probability that its confidence c says, the pattern of right and wrong answers has an
    expected log-likelihood; that of the reader's pattern, kept or overruled, falls short of it by (c - kept) logit(c).

    Args:
        confidence: (B, R), of the answers, such that its mean is the share that each reader keeps.
        kept: (B, R), how far a reader leaves an answer as it is, in [0, 1].

    >>> sure = torch.tensor([[0.9], [0.9], [0.9], [0.3]])
    >>> unsuspected(sure, torch.tensor([[1.0], [1.0], [1.0], [0.0]]))  # it overrules the doubtful answer ...
    tensor([-0.9134])
    >>> unsuspected(sure, torch.tensor([[0.0], [1.0], [1.0], [1.0]]))  # ... or one of the others
    tensor([2.1312])
    """
    confidence = confidence.clamp(1e-3, 1 - 1e-3)
    return ((confidence - kept) * confidence.logit()).sum(0)


def normalised(x: Tensor) -> Tensor:
    """Rows that sum to 1."""
    return x / x.sum(-1, keepdim=True).clamp_min_(_TINY)
