"""ROID: universal test-time adaptation through weight ensembling, diversity weighting and prior correction
(Marsden, Doebler and Yang, 2024)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_in_unit_interval, check_positive
from grotta.augment import mild_view
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.optimise import descend
from grotta.methods.origin import Origin
from grotta.methods.registry import register
from grotta.methods.tent import Tent


@register("roid")
class ROID(Tent):
    """Learn from certain and diverse samples, agree with an augmented view, stay near the source, correct the prior.

    A step on the batch X_t of B samples, on batch statistics:

    1. Predict logits z and p = softmax(z). The output is softmax(z pi'), where pi = mean p, s = max(1/B, 1/C) / max pi
       and pi' = (pi + s) / (1 + s C): classes that dominate the batch count for more.
    2. Diversity d = 1 - cos(q, p) and certainty c = -H(p), each scaled to [0, 1] within the batch. Samples with d below
       the mean are dropped; the others have the weight w = exp(d c / ``temperature``). Then q <- 0.9 q + 0.1 mean p.
    3. The network sees a mildly augmented view of the kept samples: logits z~, with gradient.
    4. One gradient step on the affine parameters theta of the norm layers down
       1/B sum w SLR(p) + 1/B sum w (CE(p, z~) + CE(p~, z)) / 2, with the soft likelihood ratio
       SLR(p) = -sum_c p_c log(p_c / (1 - p_c) + 1e-5), p clipped at 0.99.
    5. theta <- (1 - ``ensemble``) theta + ``ensemble`` theta_0, which stays near the source.

    Args:
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with Nesterov momentum 0.9.
        temperature: of the weights.
        momentum: share of the past in the tracked mean prediction q.
        ensemble: share of the source's parameters after a step.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = ROID(net)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "ROID", 140, 3.5
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "official-imagenet": {"optimizer": "sgd", "lr": 2.5e-4},
    }
    augments = True
    mean_probs: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 1 / 3,
        momentum: float = 0.9,
        ensemble: float = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.temperature = check_positive("temperature", temperature)
        self.momentum = check_in_unit_interval("momentum", momentum)
        self.ensemble = check_in_unit_interval("ensemble", ensemble)

    def build(self) -> None:
        """As TENT, with a uniform mean prediction and the source's parameters to stay near."""
        super().build()
        self.origin = Origin(self._trained)
        uniform = torch.full((self.num_classes,), 1 / self.num_classes, dtype=self.wide, device=self.device)
        self.register_buffer("mean_probs", uniform)

    def infer(self, inputs: Tensor) -> Prediction:
        """Predict with the batch's own statistics, and correct the prior."""
        logits, features = self.student(inputs)
        return Prediction(correct_prior(logits.detach().to(self.wide)), features, raw=logits)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down both losses of the diverse samples, and a small step back to the source."""
        assert prediction.raw is not None
        with torch.enable_grad():
            logits = prediction.raw.to(self.wide)
        kept, weights = self._weigh(logits.detach())
        view = mild_view(batch.inputs[kept], self.generator).to(self.dtype)
        with torch.enable_grad():
            seen, logits = self.student(view)[0].to(self.wide), logits[kept]
            consistency = GF.soft_cross_entropy(logits.softmax(1), seen) + GF.soft_cross_entropy(
                seen.softmax(1), logits
            )
            losses = soft_likelihood_ratio(logits) + consistency / 2
            loss = (weights[kept] * losses).sum() / len(batch.inputs)
        loss = descend(self.optimizer, loss)
        self.origin.pull_(self.ensemble)
        return Learned(adapted=True, loss=loss)

    def _weigh(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Which samples are diverse (B,), and the weight of each (B,); the mean prediction moves."""
        plain = logits.softmax(1)
        diversity = _to_unit_range(1 - torch.cosine_similarity(self.mean_probs[None], plain))
        certainty = _to_unit_range(-GF.softmax_entropy(logits))
        self.mean_probs.lerp_(plain.mean(0), 1 - self.momentum)
        return diversity >= diversity.mean(), (diversity * certainty / self.temperature).exp()


def soft_likelihood_ratio(logits: Tensor) -> Tensor:
    """-sum_c p_c log(p_c / (1 - p_c) + 1e-5), p = softmax clipped at 0.99; (B, C) to (B,).

    >>> soft_likelihood_ratio(torch.zeros(1, 2)).abs() < 2e-5
    tensor([True])
    """
    probs = logits.softmax(1).clamp(max=0.99)
    return -(probs * (probs / (1 - probs) + 1e-5).log()).sum(1)


def correct_prior(logits: Tensor) -> Tensor:
    """Logits (B, C) times the smoothed mean of their probabilities.

    >>> correct_prior(torch.tensor([[2.0, 0.0]]))
    tensor([[1.2329, 0.0000]])
    """
    batch, classes = logits.shape
    prior = logits.softmax(1).mean(0)
    smooth = max(1 / batch, 1 / classes) / prior.max()
    return logits * (prior + smooth) / (1 + smooth * classes)


def _to_unit_range(values: Tensor) -> Tensor:
    """Shifted and scaled to [0, 1]; equal values become 0."""
    low, high = values.aminmax()
    return (values - low) / (high - low).clamp_min(torch.finfo(values.dtype).tiny)
