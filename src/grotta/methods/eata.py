"""EATA: efficient test-time model adaptation without forgetting (Niu et al., 2022)."""

import logging
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_in_unit_interval
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.by_classes import by_classes
from grotta.methods.filtering import entropy_limit, mean_over
from grotta.methods.gradient import gradients
from grotta.methods.optimise import descend
from grotta.methods.origin import Origin
from grotta.methods.registry import register
from grotta.methods.tent import Tent
from grotta.nn import batch_stats

_log = logging.getLogger("grotta")


@register("eata")
class EATA(Tent):
    """TENT on the samples that are worth it, kept near the source where the source's answers depend on it.

    A step on the batch X_t, with one pass of the network on batch statistics:

    1. Predict P; the output is P, as it was before the update. H is the entropy of a sample's prediction p.
    2. Keep the reliable samples, H < E_0 = ``margin`` ln C, that are not redundant, |cos(m, p)| < ``redundancy``, where
       m is a moving average of the predictions kept so far. If none is left, nothing is learned.
    3. m <- 0.9 m + 0.1 mean of the kept p.
    4. One gradient step on the affine parameters theta of the norm layers down
       mean over the kept of exp(E_0 - H) H + ``beta`` sum F (theta - theta_0)^2, the weight without gradient.

    The Fisher information F tells how much the source's answers depend on a parameter: :meth:`calibrate` estimates it
    from some clean images (2,000 in the publication, without labels). Without them F is 0, as if ``beta`` were 0; the
    log says so once. F survives :meth:`reset`.

    Args:
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with momentum 0.9.
        margin: largest entropy to learn from, as a fraction of ln C.
        redundancy: largest cosine to what was learned from so far; the published 0.4, 0.1 or 0.05 for 10, 100 or 1000
            classes, whichever is nearest, by default.
        beta: weight of staying near the source.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = EATA(net, margin=1.0)
    >>> adapter.calibrate(torch.rand(32, 3, 16, 16))
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "EATA", 100, 2.4
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {"redundancy": 0.4},
        "official-cifar100": {"redundancy": 0.1},
        "official-imagenet": {"redundancy": 0.05, "optimizer": "sgd", "lr": 2.5e-4, "beta": 2000.0},
    }
    nesterov = False
    mean_probs: Tensor
    fisher: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.4,
        redundancy: float | None = None,
        beta: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.margin = check_in_unit_interval("margin", margin)
        given = by_classes(self.num_classes, 0.4, 0.1, 0.05) if redundancy is None else redundancy
        self.redundancy = check_in_unit_interval("redundancy", given)
        self.beta = check_at_least("beta", beta, 0)

    def build(self) -> None:
        """As TENT, with no predictions kept so far, and with any Fisher information there is."""
        super().build()
        self.origin = Origin(self._trained)
        self.register_buffer("mean_probs", torch.zeros(self.num_classes, dtype=self.wide, device=self.device))
        if "fisher" not in self._buffers:
            size = sum(p.numel() for p in self._trained)
            self.register_buffer("fisher", torch.zeros(size, dtype=self.wide, device=self.device))

    def calibrate(self, images: Tensor, batch_size: int = 64) -> None:
        """Estimate F on clean ``images`` (n, C, H, W) of the source's domain, uint8 or float in [0, 1].

        F is the mean over their batches of the squared gradient of the source's cross-entropy to its own labels.
        """
        if self.optimizer is None:
            return  # nothing is trained, so nothing can drift
        network = self.network(batch_stats())
        trained = list(self.trained_in(network).values())
        squares = []
        for inputs in self.in_batches(images, batch_size):
            with torch.inference_mode(False), torch.enable_grad():
                logits = network(inputs)[0].to(self.wide)
                slopes = gradients(F.cross_entropy(logits, logits.argmax(1)), trained)
            squares.append(torch.cat([gradient.flatten() for gradient in slopes]).square())
        with self._turns.exclusive():
            self.fisher.copy_(torch.stack(squares).mean(0))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down the weighted entropy of the samples worth it, if any."""
        anchored = self.beta > 0 and bool(self.fisher.any())
        if self.step == 0 and self.beta > 0 and not anchored:
            _log.warning("%s: no clean images were given to calibrate(): nothing holds it near the source", self.name)
        limit = entropy_limit(self.margin, self.num_classes)
        with torch.enable_grad():
            logits = prediction.logits.to(self.wide)
            entropies = GF.softmax_entropy(logits)
        certain, plain = entropies.detach(), logits.detach().softmax(1)
        similarity = torch.cosine_similarity(self.mean_probs[None], plain).abs()  # 0 while there is no mean
        kept = (certain < limit) & (similarity < self.redundancy)
        if not bool(kept.any()):
            return Learned()
        rate = torch.where(self.mean_probs.any(), 0.1, 1.0)
        self.mean_probs.lerp_(plain[kept].mean(0), rate.to(self.wide))
        with torch.enable_grad():
            loss = mean_over((limit - certain).exp() * entropies, kept)
            if anchored:
                loss = loss + self.beta * (self.fisher * self.origin.offset().square()).sum()
        return Learned(adapted=True, loss=descend(self.optimizer, loss))
