"""Which samples of a batch are similar: row-stochastic affinity matrices of the features.

All distances are between L2-normalised features and are computed in float64, so that a float32 or
half-precision batch gives the same graph on every device.
"""

import torch
from torch import Tensor

from grotta._check import check_positive, check_whole
from grotta.functional._checks import check_matrix

# Squared distances closer than this count as equal: far above float64 rounding, far below float32 resolution.
_TIE = 1e-9


def knn_affinity(features: Tensor, k: int) -> Tensor:
    """Equal weight on each sample's ``k`` nearest other samples.

    ``s_ij = 1/k`` if f_j is among the k nearest neighbours of f_i, else 0. A sample is never its own neighbour;
    a batch with fewer than ``k`` others uses all of them; ties go to the first ones.

    Args:
        features: (B, d) finite features; a zero row is allowed.
        k: the number of neighbours.

    Returns:
        (B, B) in the dtype of ``features``; rows sum to 1, except for B = 1, where the only entry is 0.

    >>> knn_affinity(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), k=1)
    tensor([[0., 1., 0.],
            [1., 0., 0.],
            [0., 1., 0.]])
    """
    check_matrix("features", features, "d")
    check_whole("k", k, at_least=1)
    return knn_weights(cosines(features), k).to(features.dtype)


def rbf_affinity(features: Tensor, sigma: float) -> Tensor:
    """Weights that fall with distance like a Gaussian of width ``sigma``.

    ``s_ij = w_ij / sum_l w_il`` with ``w_ij = exp(-||f_i - f_j||^2 / 2 sigma^2)`` and ``w_ii = 0``.

    Args:
        features: (B, d) finite features; a zero row is allowed.
        sigma: the width of the kernel; however small it is, a row keeps its nearest sample.

    Returns:
        (B, B) in the dtype of ``features``; rows sum to 1, except for B = 1, where the only entry is 0.

    >>> rbf_affinity(torch.eye(3), sigma=1.0)
    tensor([[0.0000, 0.5000, 0.5000],
            [0.5000, 0.0000, 0.5000],
            [0.5000, 0.5000, 0.0000]])
    """
    check_matrix("features", features, "d")
    check_positive("sigma", sigma)
    return rbf_weights(cosines(features), sigma).to(features.dtype)


def cosines(features: Tensor) -> Tensor:
    """(B, B) float64 inner products of the L2-normalised rows; a zero row has the product 0 with every row.

    Normalising the (B, B) products instead of the (B, d) rows saves two passes over the features.
    """
    wide = features.double()
    products = wide @ wide.T
    norms = products.diagonal().sqrt().clamp_min(torch.finfo(torch.float64).tiny)
    return products / norms / norms[:, None]


def squared_distances(cosine: Tensor) -> Tensor:
    """(B, B) squared Euclidean distances of L2-normalised rows from their inner products."""
    squares = cosine.diagonal()
    return (squares[:, None] + squares - 2 * cosine).clamp_min(0)


def nearest_neighbours(cosine: Tensor, k: int) -> Tensor:
    """(B, min(k, B - 1)) indices of each row's nearest other rows, in no particular order.

    ``topk`` leaves the choice among equal values to the device, so the distance and the index are packed into
    one integer key: no two keys of a row are equal, and of equal distances the lower index is nearer.
    """
    batch = len(cosine)
    steps = (squared_distances(cosine) / _TIE).round().long()
    keys = steps * batch + torch.arange(batch, device=cosine.device)
    keys.fill_diagonal_(torch.iinfo(keys.dtype).max)
    return keys.topk(min(k, batch - 1), dim=1, largest=False, sorted=False).indices


def knn_weights(cosine: Tensor, k: int) -> Tensor:
    """``knn_affinity`` from (B, B) inner products."""
    neighbours = nearest_neighbours(cosine, k)
    return torch.zeros_like(cosine).scatter_(1, neighbours, 1.0 / max(1, neighbours.shape[1]))


def rbf_weights(cosine: Tensor, sigma: float) -> Tensor:
    """``rbf_affinity`` from (B, B) inner products."""
    if len(cosine) == 1:
        return torch.zeros_like(cosine)
    squared = squared_distances(cosine).fill_diagonal_(torch.inf)
    # A softmax ignores what a whole row has in common: counted from its nearest sample, a row is never empty. The
    # square of a tiny sigma would underflow, hence two divisions.
    return ((squared.amin(dim=1, keepdim=True) - squared) / sigma / sigma / 2).softmax(dim=1)
