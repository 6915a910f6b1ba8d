"""GRoTTA+: three readings of one network, weighed by how far they agree, and the order of the stream."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_at_least, check_in_unit_interval, check_whole
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.registry import register
from grotta.methods.track_record import Counts, TrackRecord
from grotta.nn import gated, iabn
from grotta.nn.gated_bn import GatedBN1d, Observation, observing

SAMPLES = 64  # ``memory`` is per this many images
SOURCE, INSTANCE, TRACKED = 0, 1, 2


class Seen(NamedTuple):
    """What learning needs of a prediction: observations of the tracked norm layers, and the record after the batch."""

    observations: list[tuple[GatedBN1d, Observation]]
    answers: Tensor | None  # (B, 3), if all three experts were asked
    confidence: Tensor | None  # (3,), summed over the batch


@register("grotta+")
class GRoTTAPlus(Adapter):
    """The recommended method: it trains nothing and includes the untouched model.

    One set of weights is read in three ways, which differ in their batch normalisation alone:

    - *source*: the statistics of the training set; right where nothing has changed;
    - *instance*: each image is corrected by its own statistics where these clearly differ (IABN); needs no batch, no
      memory and no time, whatever the labels do;
    - *tracked*: the statistics follow the stream (a gated filter in every layer), at once when a domain changes, slowly
      where batches are poor samples of the classes; best on fair batches.

    Their log-probabilities are averaged, each weighted by its estimated accuracy to the power ``sharpness``. The
    accuracies come from how often the three agree, about the same image and across time (:class:`TrackRecord`), so a
    reading that fails is voted down within a few batches, and on clean images the source model leads. The answer is
    then read in the light of its neighbours in time (``output="stream"``).

    A model without batch normalisation is read in one way, as it is, and profits from the order of the stream alone.

    Args:
        experts: how many of the three are asked about each batch. With fewer than three, those that did best when all
            three were last asked.
        probe_every: with fewer than three experts, all are asked about every n-th batch.
        k: by how many standard errors an image must differ to be corrected (instance).
        sharpness: power of the estimated accuracies in the weights.
        memory: share of the agreement that is kept over 64 images.
        **options: those of :class:`grotta.methods.Adapter`.

    ``adapter.last.extra`` has ``estimated_accuracy`` (of the best reading), ``source_accuracy`` (of the
    untouched model, estimated likewise), ``source_weight``, and the output's ``shift`` and ``temperature``.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = GRoTTAPlus(net)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "GRoTTA+", 100, 3.6
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "fast": {"experts": 2, "probe_every": 8},
        "lite": {"experts": 1, "probe_every": 24},
    }
    contains_source = True
    order: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        experts: int = 3,
        probe_every: int = 8,
        k: float = 5.0,
        sharpness: float = 4.0,
        memory: float = 0.9,
        output: str | None = "stream",
        **options: Any,
    ) -> None:
        super().__init__(model, output=output, **options)
        self.experts = check_whole("experts", experts, at_least=1)
        if self.experts > 3:
            raise ValueError(f"experts must be 1, 2 or 3, got {experts}")
        self.probe_every = check_whole("probe_every", probe_every, at_least=1)
        self.k = check_at_least("k", k, 0)
        self.sharpness = check_at_least("sharpness", sharpness, 0)
        self.keeps = check_in_unit_interval("memory", memory)
        self.reset()

    def build(self) -> None:
        """The three readings, on one set of weights, and their agreement so far."""
        norms = [m for m in self.model.modules() if isinstance(m, _BatchNorm)]
        self.source = self.network().requires_grad_(False)
        self.single = not norms or any(m.running_mean is None for m in norms)
        if self.single:
            return
        self.instance = self.network(iabn(self.k)).requires_grad_(False)
        self.tracked = self.network(gated()).requires_grad_(False)
        self.record = TrackRecord(3, self.num_classes, device=self.device, dtype=self.wide)
        self.register_buffer("order", torch.tensor([INSTANCE, TRACKED, SOURCE], device="cpu"))  # best expert first

    def infer(self, inputs: Tensor) -> Prediction:
        """Ask the experts and pool what they say."""
        if self.single:
            return Prediction(*self.source(inputs))
        everyone = self.experts == 3 or self.step % self.probe_every == 0
        asked = [SOURCE, INSTANCE, TRACKED] if everyone else sorted(self.order[: self.experts].tolist())
        networks = (self.source, self.instance, self.tracked)
        with observing() as observations:
            said = {expert: networks[expert](inputs) for expert in asked}
        with torch.autocast(self.device.type, enabled=False):
            logs = torch.stack([said[expert][0].to(self.wide).log_softmax(1) for expert in asked], 1)  # (B, E, classes)
            confidence, answers = logs.max(2)
            seen = Seen(observations, answers, confidence.exp().sum(0)) if everyone else Seen(observations, None, None)
            weights = self._record_after(seen).accuracies()[asked] ** self.sharpness
            pooled = torch.einsum("e,bec->bc", weights / weights.sum(), logs)
        return Prediction(pooled, said[asked[-1]][1], extra=seen)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Move the tracked statistics and the agreement on."""
        if self.single:
            return Learned()
        seen = prediction.extra
        assert isinstance(seen, Seen)
        for layer, observation in seen.observations:
            layer.move(observation)
        with torch.autocast(self.device.type, enabled=False):
            after = self._record_after(seen)
            self.record.take(after)
            accuracy = after.accuracies()
            weights = accuracy**self.sharpness
            if seen.answers is not None and self.experts < 3:
                self.order.copy_(weights.argsort(descending=True))
        chance = 1 / self.num_classes
        estimated = chance + (1 - chance) * accuracy
        return Learned(
            adapted=bool(seen.observations),
            numbers={
                "estimated_accuracy": estimated.max(),
                "source_accuracy": estimated[SOURCE],
                "source_weight": weights[SOURCE] / weights.sum(),
            },
        )

    def _record_after(self, seen: Seen) -> Counts:
        """The experts' record after a batch; unchanged if not all of them were asked."""
        counts = self.record.counts()
        if seen.answers is None or seen.confidence is None:
            return counts
        batches = 1 if self.experts == 3 else self.probe_every  # a probe stands for the batches since the one before
        keep = self.keeps ** (len(seen.answers) * batches / SAMPLES)
        return counts.after(seen.answers, seen.confidence, keep, following=self.experts == 3)
