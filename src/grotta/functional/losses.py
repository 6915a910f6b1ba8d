"""Entropies and cross-entropies of predictions, per sample or averaged."""

import torch
from torch import Tensor


def soft_cross_entropy(target_probs: Tensor, logits: Tensor) -> Tensor:
    """Cross-entropy between a teacher's probabilities and a student's logits, for each sample.

    ``H(p, z) = -sum_c p_c log softmax(z)_c``; (B, C) and (B, C) to (B,).

    >>> soft_cross_entropy(torch.tensor([[0.5, 0.5]]), torch.zeros(1, 2))
    tensor([0.6931])
    """
    if target_probs.shape != logits.shape:
        raise ValueError(
            "target_probs and logits must have the same shape, "
            f"got {tuple(target_probs.shape)} and {tuple(logits.shape)}"
        )
    return -(target_probs * logits.log_softmax(dim=-1)).sum(dim=-1)


def distillation_loss(
    target_probs: Tensor, logits: Tensor, *, weights: Tensor | None = None, per_class: bool = False
) -> Tensor:
    """Mean over the batch of the cross-entropy between a teacher's probabilities and a student's logits.

    ``1/B sum_i w_i H(p_i, z_i)``, times ``1/C`` if ``per_class``.

    Args:
        target_probs: (B, C) probabilities of the teacher.
        logits: (B, C) logits of the student.
        weights: (B,) weight of each sample; the sum is divided by B, not by the sum of the weights.
        per_class: also divide by the number of classes.

    Returns:
        A 0-dim tensor.

    >>> distillation_loss(torch.tensor([[0.5, 0.5]]), torch.zeros(1, 2), weights=torch.tensor([2.0]))
    tensor(1.3863)
    """
    per_sample = soft_cross_entropy(target_probs, logits)
    if weights is not None:
        if weights.shape != per_sample.shape:
            raise ValueError(
                f"weights must have shape {tuple(per_sample.shape)}, one per sample, got {tuple(weights.shape)}"
            )
        per_sample = per_sample * weights
    loss = per_sample.mean()
    return loss / logits.shape[-1] if per_class else loss


def softmax_entropy(logits: Tensor) -> Tensor:
    """Entropy of ``softmax(logits)`` in nats, for each sample; (B, C) to (B,).

    >>> softmax_entropy(torch.zeros(1, 2))
    tensor([0.6931])
    """
    log_probs = logits.log_softmax(dim=-1)
    return -(log_probs.exp() * log_probs).sum(dim=-1)


def entropy(probs: Tensor, eps: float = 1e-6) -> Tensor:
    """Entropy ``-sum_c p_c log(p_c + eps)`` of probabilities in nats, for each sample; (B, C) to (B,).

    ``eps`` keeps a zero probability finite; its default is the one that RoTTA and NOTE were published with.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]])).round(decimals=4).abs()
    tensor([0.6931, 0.0000])
    """
    return -(probs * torch.log(probs + eps)).sum(dim=-1)
