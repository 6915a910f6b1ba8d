"""Output adaptation: the part that fits on any method's predictions."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from grotta import functional as GF


class Output(NamedTuple):
    """Probabilities (B, C) as they go out, and the two numbers that may stand behind them."""

    probs: Tensor
    zeta: Tensor
    lam: Tensor | None


OUTPUTS: tuple[str | None, ...] = (None, "bias_guided", "laplacian")


def output_adaptation(
    kind: str | None, *, k: int = 5, affinity: str = "knn", sigma: float = 1.0, lam: float | None = None
) -> Callable[[Tensor, Tensor], Output]:
    """The function from (probabilities, features) to :class:`Output` that ``kind`` names.

    >>> adapt = output_adaptation("bias_guided", k=5)
    >>> adapt(torch.tensor([[0.9, 0.1]]), torch.ones(1, 4)).probs
    tensor([[0.9000, 0.1000]])
    """
    if kind not in OUTPUTS:
        raise ValueError(f"output must be one of {OUTPUTS}, got {kind!r}")

    def adapt(probs: Tensor, features: Tensor) -> Output:
        if kind == "bias_guided":
            refined = GF.bias_guided_refine(probs, features, k=k, affinity=affinity, sigma=sigma, lam=lam)
            return Output(*refined)
        zeta = GF.imbalance_score(probs)
        if kind == "laplacian":
            probs = GF.laplacian_refine(probs, features, affinity=affinity, k=k)
        return Output(probs, zeta, None)

    # Options that are out of range are refused now, not by a first batch, and even if this kind does not use them.
    probs, features = torch.full((2, 2), 0.5, device="cpu"), torch.eye(2, device="cpu")
    adapt(probs, features)
    knn_or_rbf = "knn" if affinity == "linear" and kind != "bias_guided" else affinity
    GF.bias_guided_refine(probs, features, k=k, affinity=knn_or_rbf, sigma=sigma, lam=lam)
    return adapt
