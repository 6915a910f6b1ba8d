"""How far the predicted labels of one batch are from being balanced."""

import torch
from torch import Tensor

from grotta.functional._checks import check_probs


def imbalance_score(probs: Tensor) -> Tensor:
    """The imbalance score zeta of a batch of predictions.

    ``zeta = ||q - 1/R||_2``, where q are the R = min(C, B) largest values of the histogram of
    ``argmax probs``, divided by their sum. It is 0 for predictions as balanced as R allows (so always for B = 1) and
    ``sqrt(1 - 1/R)``, its largest value, when all predictions agree.

    Args:
        probs: (B, C) class probabilities.

    Returns:
        A 0-dim float64 tensor on the device of ``probs``.

    >>> imbalance_score(torch.eye(4))
    tensor(0., dtype=torch.float64)
    >>> imbalance_score(torch.eye(4)[[2, 2, 2, 2]])
    tensor(0.8660, dtype=torch.float64)
    """
    check_probs(probs)
    batch, classes = probs.shape
    kept = min(batch, classes)
    labels = probs.argmax(dim=1)
    ones = probs.new_ones(batch, dtype=torch.float64)
    counts = ones.new_zeros(classes).index_add_(0, labels, ones)
    # At most R classes occur, so the R largest values hold the whole histogram, their sum is 1 and
    # zeta^2 = sum q^2 - 1/R. With whole numbers this is exact: balanced predictions give 0, not rounding noise.
    excess = counts.dot(counts) * kept - batch * batch
    return (excess / (kept * batch * batch)).sqrt()
