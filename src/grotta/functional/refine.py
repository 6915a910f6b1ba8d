"""Bias-guided output adaptation: let similar samples of a biased batch agree on their label."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from grotta._check import check_between, check_one_of, check_positive, check_whole
from grotta.functional._checks import check_same_batch
from grotta.functional.affinity import cosines, knn_weights, rbf_weights
from grotta.functional.imbalance import imbalance_score

AFFINITIES = ("knn", "rbf")

# Scores that agree to this many decimals count as equal: the rounding of the solve is smaller. An exact tie between
# classes then goes to the first one on every device, not to the one that rounding favours.
_TIE_DECIMALS = 12


class Refined(NamedTuple):
    """Refined predictions and the numbers that decided them."""

    probs: Tensor
    """(B, C) class probabilities in the dtype of the input."""
    zeta: Tensor
    """0-dim float64: the imbalance score of the batch."""
    lam: Tensor
    """0-dim float64: the weight lambda of the graph against the predictions."""


def bias_guided_refine(
    probs: Tensor,
    features: Tensor,
    *,
    k: int = 5,
    affinity: str = "knn",
    sigma: float = 1.0,
    lam: float | None = None,
) -> Refined:
    """Refine predictions by the structure of the features, more strongly the more biased the batch is.

    ``Z* = (1 - lambda) (I - lambda S)^-1 P`` with the affinity S of the features, and

    - ``lam=None``: ``lambda = zeta^(1 / ln C)`` from the imbalance score zeta of P, and the output is
      ``zeta onehot(Z*) + (1 - zeta) P``;
    - ``lam`` given: that lambda, and the output is ``onehot(Z*)`` (the ablation without batch-level reweighting).

    A single sample has no neighbours and comes back unchanged, and so does, with ``lam=None``, a balanced batch.
    Gradients flow through P alone. No value is read back from the device.

    Args:
        probs: (B, C) class probabilities P, C >= 2.
        features: (B, d) features of the same samples, of any scale.
        k: the number of neighbours of the ``"knn"`` affinity.
        affinity: ``"knn"`` or ``"rbf"``.
        sigma: the width of the ``"rbf"`` affinity.
        lam: a fixed lambda in [0, 1).

    Returns:
        ``Refined(probs, zeta, lam)``; the rows of ``probs`` sum to 1.

    The last sample looks like the others, in a batch that is mostly of class 0:

    >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.45, 0.55]])
    >>> refined = bias_guided_refine(probs, features=torch.ones(4, 3))
    >>> refined.probs.argmax(dim=1).tolist(), round(refined.zeta.item(), 4)
    ([0, 0, 0, 0], 0.3536)
    """
    check_same_batch(probs, features)
    check_one_of("affinity", affinity, AFFINITIES)
    check_whole("k", k, at_least=1)
    check_positive("sigma", sigma)
    if lam is not None:
        check_between("lam", lam, 0, 1, below=True)
    zeta = imbalance_score(probs)
    weight = zeta ** (1 / math.log(probs.shape[1])) if lam is None else torch.full_like(zeta, lam)
    if len(probs) == 1:
        return Refined(probs, zeta, weight)

    cosine = cosines(features.detach())
    graph = knn_weights(cosine, k) if affinity == "knn" else rbf_weights(cosine, sigma)
    scores = _propagate(probs.detach(), graph, weight).round(decimals=_TIE_DECIMALS)
    one_hot = torch.zeros_like(probs).scatter_(1, scores.argmax(dim=1, keepdim=True), 1.0)
    if lam is not None:
        return Refined(one_hot, zeta, weight)
    return Refined(torch.lerp(probs, one_hot, zeta.to(probs.dtype)), zeta, weight)


def _propagate(probs: Tensor, graph: Tensor, lam: Tensor) -> Tensor:
    """``Z* = (1 - lambda) (I - lambda S)^-1 P`` in float64.

    The condition number grows as 1 / (1 - lambda), to thousands for one-sided batches of many classes: too much
    for float32. Every row of lambda S has a sum below 1, so the system is never singular, and ``solve_ex``, which
    skips the check that would wait for the device, is safe.
    """
    system = torch.mul(graph, -lam)
    system.diagonal().add_(1)
    solution: Tensor = torch.linalg.solve_ex(system, probs.double() * (1 - lam)).result
    return solution
