"""What several experts have been like lately, without labels: the record that GRoTTA+ weighs its readings by."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grotta.functional.agreement import lagged_agreement
from grotta.functional.reliance import constancy, information, reliance, signs

LAGS = 8  # samples that count as close in time
SLOWLY = 0.9  # what is kept of agreement across time over 64 images: its pairs are fewer, and say less each
SAMPLES = 64
EVEN = 128  # images of an even mix that an expert's usual mix begins with


class Counts(NamedTuple):
    """Sums over the recent stream; old samples fade."""

    answers: Tensor  # (E, C), of probabilities
    entropy: Tensor  # (E,)
    confidence: Tensor  # (E,)
    images: Tensor  # 0-dim, the samples behind these
    lagged: Tensor  # (E, E), agreement across time
    pairs: Tensor  # 0-dim, pairs of samples behind ``lagged``
    chosen: Tensor  # (E, C), how often each class was the answer, fading as slowly
    past: Tensor  # (LAGS, E), the last answers, -1 where there are none

    def renewed(self, is_new_domain: Tensor, waiting: int) -> "Counts":
        """Where a new domain has begun, little is left of what depends on it: as much as of ``waiting`` images.

        So many came before it was clear.
        """
        left = torch.where(is_new_domain, (waiting / self.images.clamp_min(1)).clamp(max=1), 1.0).to(self.images)
        fast = {name: getattr(self, name) * left for name in ("answers", "entropy", "confidence", "images")}
        return self._replace(**fast)

    def after(self, logs: Tensor, keep: float, images: float, *, following: bool = True) -> "Counts":
        """The counts after a batch with log-probabilities ``logs`` (B, E, C).

        ``keep`` is what is left of the old ones after 64 images, of which the batch stands for ``images``.
        ``following``: it directly follows the batch before.
        """
        fast, slow = keep ** (images / SAMPLES), SLOWLY ** (images / SAMPLES)
        probs = logs.exp()
        confidence, answers = probs.max(2)
        past = self.past if following else torch.full_like(self.past, -1)
        lagged, pairs = lagged_agreement(answers, past)
        ones = torch.ones_like(answers.T, dtype=logs.dtype)
        return Counts(
            fast * self.answers + probs.sum(0),
            fast * self.entropy - (probs * logs).sum((0, 2)),
            fast * self.confidence + confidence.sum(0),
            fast * self.images + len(logs),
            slow * self.lagged + lagged.to(logs),
            slow * self.pairs + pairs.to(logs),
            slow * self.chosen + torch.zeros_like(self.chosen).scatter_add_(1, answers.T, ones),
            torch.cat([past, answers])[-LAGS:],
        )

    def constancy(self) -> tuple[Tensor, Tensor]:
        """How constant each expert is in time (E,), and how clearly labels cluster, 0-dim in [0, 1]."""
        shares = self.chosen + 0.5
        return constancy(self.lagged / self.pairs.clamp_min(1), shares / shares.sum(1, keepdim=True))

    def signs(self) -> Tensor:
        """What speaks for each expert; (E, 3)."""
        classes = self.answers.shape[1]
        images = self.images.clamp_min(1e-6)
        mean = torch.where(self.images > 0, self.answers / images, torch.full_like(self.answers, 1 / classes))
        constant, clear = self.constancy()
        usual = self.chosen + EVEN / classes
        chance = (usual / usual.sum(1, keepdim=True)).square().sum(1)
        told = information(self.entropy / images, mean)
        return signs(told, self.confidence / images, chance, constant, clear, classes)

    def weights(self) -> Tensor:
        """How far each expert is relied on; (E,), sums to 1."""
        return reliance(self.signs())


class TrackRecord(nn.Module):
    """The counts as buffers, so that they are saved, moved and reset with the method."""

    def __init__(self, experts: int, classes: int, **factory: Any) -> None:
        super().__init__()
        shapes = {
            "answers": (experts, classes),
            "entropy": (experts,),
            "confidence": (experts,),
            "images": (),
            "lagged": (experts, experts),
            "pairs": (),
            "chosen": (experts, classes),
        }
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, **factory))
        self.register_buffer("past", torch.full((LAGS, experts), -1, device=factory.get("device")))

    def counts(self) -> Counts:
        """The counts as they are."""
        return Counts(*(getattr(self, name) for name in Counts._fields))

    def take(self, counts: Counts) -> None:
        """Become ``counts``."""
        with torch.no_grad():
            for own, new in zip(self.counts(), counts):
                own.copy_(new)
