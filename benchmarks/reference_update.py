"""Adam and the moving average of a teacher, one tensor after the other: what the foreach kernels must equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


@torch.no_grad()
def ema(teacher: Sequence[Tensor], student: Sequence[Tensor], nu: float) -> None:
    for t, s in zip(teacher, student, strict=True):
        t.copy_((1 - nu) * t + nu * s)


class ReferenceAdam:
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, w -= lr m^ / (sqrt(v^) + eps)."""

    def __init__(self, parameters: Sequence[Tensor], lr: float) -> None:
        self.parameters, self.lr, self.steps = list(parameters), lr, 0
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        for p, m, v in zip(self.parameters, self.first, self.second, strict=True):
            assert p.grad is not None
            m.copy_(0.9 * m + 0.1 * p.grad)
            v.copy_(0.999 * v + 0.001 * p.grad**2)
            m_hat, v_hat = m / (1 - 0.9**self.steps), v / (1 - 0.999**self.steps)
            p.sub_(self.lr * m_hat / (v_hat.sqrt() + 1e-8))
