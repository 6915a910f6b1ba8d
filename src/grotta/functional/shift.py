"""How imbalanced a sequence of label distributions is, and how much it changes."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


def imbalance_degree(p: ArrayLike | Tensor) -> float:
    """The imbalance degree ID of a sequence of label distributions.

    ``ID = 1/n sum_i ||p_i - 1/C||_2``, from 0 (always uniform) to ``sqrt(1 - 1/C)`` (always a single class).

    Args:
        p: (n, C) array or tensor; each row is a distribution over the C classes.

    >>> round(imbalance_degree([[0.5, 0.5], [1.0, 0.0]]), 6)
    0.353553
    """
    rows = _distributions(p)
    return float(np.linalg.norm(rows - 1 / rows.shape[1], axis=1).mean())


def change_degree(p: ArrayLike | Tensor) -> float:
    """The change degree CD of a sequence of label distributions.

    ``CD = sqrt(2)/2 * 1/(n - 1) sum_i ||p_i - p_{i-1}||_2``, from 0 (constant) to 1 (a different
    single class each time). A sequence of one distribution does not change: 0.

    Args:
        p: (n, C) array or tensor in order of time; each row is a distribution over the C classes.

    >>> round(change_degree([[1.0, 0.0], [0.0, 1.0]]), 6)
    1.0
    """
    rows = _distributions(p)
    if len(rows) == 1:
        return 0.0
    return float(np.linalg.norm(np.diff(rows, axis=0), axis=1).mean() / math.sqrt(2))


def _distributions(p: ArrayLike | Tensor) -> NDArray[np.float64]:
    values: Any = p.detach().cpu().double().numpy() if isinstance(p, Tensor) else p
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"p must have shape (n, C) with n, C >= 1, got {rows.shape}")
    # Half-precision and hand-typed distributions pass; counts, logits and transposed input do not.
    if not ((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, atol=1e-2)):
        raise ValueError("p must hold distributions: each row non-negative, with sum 1")
    return rows
