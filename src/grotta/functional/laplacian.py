"""LAME: Laplacian adjusted maximum-likelihood estimation of a batch's labels."""

import torch
from torch import Tensor

from grotta._check import check_one_of, check_whole
from grotta.functional._checks import check_same_batch
from grotta.functional.affinity import cosines, nearest_neighbours, squared_distances

AFFINITIES = ("knn", "rbf", "linear")

_MAX_ITERATIONS = 100
_TOLERANCE = 1e-8
_LOG_EPS = 1e-10
# Below this width of the kernel, squared, samples are equal up to rounding and get affinity 1.
_MIN_SQUARED_WIDTH = 1e-12


def laplacian_refine(probs: Tensor, features: Tensor, *, affinity: str = "knn", k: int = 5) -> Tensor:
    """Refine predictions by a concave-convex descent on the Laplacian of the features.

    With ``u = -log(p + 1e-10)`` and ``Y = softmax(-u)`` at first, ``Y <- softmax(-u + K Y)`` is repeated until
    the energy ``E = sum(u Y - (K Y_prev) Y + Y log Y)`` changes by at most 1e-8 of itself, at most 100 times.

    Args:
        probs: (B, C) class probabilities, C >= 2.
        features: (B, d) features of the same samples, of any scale.
        affinity: the kernel K of the L2-normalised features: ``"knn"`` is 1 for the ``k`` nearest other samples
            and 0 elsewhere; ``"rbf"`` is ``exp(-d^2 / 2 s^2)`` with s the batch mean of the ``k``-th smallest
            distance, a sample's distance to itself included; ``"linear"`` is ``f f^T``.
        k: the number of neighbours.

    Returns:
        (B, C) class probabilities in the dtype of ``probs``.

    >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.4, 0.6]])
    >>> laplacian_refine(probs, features=torch.ones(4, 3)).argmax(dim=1)
    tensor([0, 0, 0, 0])
    """
    check_same_batch(probs, features)
    check_one_of("affinity", affinity, AFFINITIES)
    check_whole("k", k, at_least=1)
    log_probs = (probs.detach().double() + _LOG_EPS).log()
    return _minimise(log_probs, _kernel(cosines(features.detach()), affinity, k)).to(probs.dtype)


def _minimise(log_probs: Tensor, kernel: Tensor) -> Tensor:
    assignment = log_probs.softmax(dim=1)
    energy: Tensor | None = None
    for _ in range(_MAX_ITERATIONS):
        exponent = torch.addmm(log_probs, kernel, assignment)
        normaliser = exponent.logsumexp(dim=1, keepdim=True)
        assignment = exponent.sub_(normaliser).exp_()
        # log Y = -u + K Y_prev - normaliser, so the three terms of the energy cancel, except for the normaliser.
        previous, energy = energy, -normaliser.sum()
        if previous is not None and (energy - previous).abs() <= _TOLERANCE * previous.abs():
            break
    return assignment


def _kernel(cosine: Tensor, affinity: str, k: int) -> Tensor:
    if affinity == "linear":
        return cosine
    if affinity == "knn":
        return torch.zeros_like(cosine).scatter_(1, nearest_neighbours(cosine, k), 1.0)
    squared = squared_distances(cosine)
    width = squared.kthvalue(min(k, len(cosine)), dim=1).values.sqrt().mean()
    return (squared / (-2 * width.square().clamp_min(_MIN_SQUARED_WIDTH))).exp()
