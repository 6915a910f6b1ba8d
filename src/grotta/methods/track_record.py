"""How good several experts have been lately, without labels: the record that GRoTTA+ weighs its readings by."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grotta.functional.agreement import (
    accuracies_from_agreement,
    accuracies_in_time,
    lagged_agreement,
    pairwise_agreement,
)

LAGS = 8  # samples that count as close in time
PRIOR, PRIOR_WEIGHS = 0.7, 16.0  # agreement that is assumed at first, and for how many samples
FAINT, CLEAR = 0.02, 0.1  # agreement across time, beyond chance, that says nothing, and that says all


class Counts(NamedTuple):
    """Sums over the recent stream; old samples fade."""

    agreement: Tensor  # (E, E), about the same image
    lagged: Tensor  # (E, E), across time
    answered: Tensor  # (E, C)
    confidence: Tensor  # (E,)
    images: Tensor  # 0-dim
    pairs: Tensor  # 0-dim, pairs of samples behind ``lagged``
    past: Tensor  # (LAGS, E), the last answers, -1 where there are none

    def after(self, answers: Tensor, confidence: Tensor, keep: float, *, following: bool = True) -> "Counts":
        """The counts after a batch with ``answers`` (B, E); ``following``: it directly follows the one before."""
        like = self.agreement
        past = self.past if following else torch.full_like(self.past, -1)
        lagged, pairs = lagged_agreement(answers, past)
        classes = torch.zeros_like(self.answered).scatter_add_(
            1, answers.T, torch.ones_like(answers.T, dtype=like.dtype)
        )
        return Counts(
            keep * self.agreement + pairwise_agreement(answers).to(like),
            keep * self.lagged + lagged.to(like),
            keep * self.answered + classes,
            keep * self.confidence + confidence.to(like),
            keep * self.images + len(answers),
            keep * self.pairs + pairs.to(like),
            torch.cat([past, answers])[-LAGS:],
        )

    def accuracies(self) -> Tensor:
        """Estimated accuracy, beyond chance, of each expert; (E,) in (0, 1).

        Agreement about the same image, as far as labels do not cluster in time; agreement across time, as far as
        they do; and the mean confidence.
        """
        classes = self.answered.shape[1]
        agreement = (self.agreement + PRIOR_WEIGHS * PRIOR) / (self.images + PRIOR_WEIGHS)
        alike = accuracies_from_agreement(agreement, classes)
        shares = (self.answered + 0.5) / (self.images + 0.5 * classes)
        in_time, strength = accuracies_in_time(self.lagged / self.pairs.clamp_min(1), shares)
        trust = ((strength - FAINT) / (CLEAR - FAINT)).clamp(0, 1)
        accuracy = torch.lerp(alike.log(), (in_time * alike.max()).log(), trust).exp()
        return accuracy * (self.confidence / self.images.clamp_min(1)).clamp_min(1 / classes)


class TrackRecord(nn.Module):
    """The counts as buffers, so that they are saved, moved and reset with the method."""

    def __init__(self, experts: int, classes: int, **factory: Any) -> None:
        super().__init__()
        shapes = {
            "agreement": (experts, experts),
            "lagged": (experts, experts),
            "answered": (experts, classes),
            "confidence": (experts,),
            "images": (),
            "pairs": (),
        }
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, **factory))
        self.register_buffer("past", torch.full((LAGS, experts), -1, device=factory.get("device")))

    def counts(self) -> Counts:
        """The counts as they are."""
        return Counts(*(self.get_buffer(name) for name in Counts._fields))

    def take(self, counts: Counts) -> None:
        """Become ``counts``."""
        with torch.no_grad():
            for own, new in zip(self.counts(), counts):
                own.copy_(new)
