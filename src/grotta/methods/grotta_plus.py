"""GRoTTA+: several readings of one network, weighed by what can be seen of them, and the order of the stream."""

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_at_least, check_flag, check_in_unit_interval, check_positive, check_whole
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.domain_watch import DomainWatch, Sight
from grotta.methods.fair_training import FairTraining, fair_training
from grotta.methods.registry import register
from grotta.methods.track_record import Counts, TrackRecord
from grotta.nn import GatedBN1d, gated, iabn, move_gates, observing
from grotta.nn.shown import Shown
from grotta.outputs.base import Domain

READINGS = ("source", "instance", "bold", "tracked")
WITHOUT_STATISTICS = ("source", "tracked")  # of a network without batch normalisation: as it is, and trained
FIRST_ORDER = ("instance", "tracked", "source", "bold")  # best first, until more is known
SOURCE = 0  # the first of the readings; the tracked one is the last
WATCHED = 0.9  # what is kept, over 64 images, of the sums behind the estimated accuracies
SAMPLES = 64
FAINTLY = 1e-6  # a sign of labels that cluster that is none, but enough to wait
NEWS = 0.1  # change of the leaders' mean confidence since all were asked that makes it time to ask them again


class Seen(NamedTuple):
    """What the experts that were asked make of a batch."""

    said: dict[int, Tensor]  # (B, classes), log-probabilities by expert
    observations: list[tuple[GatedBN1d, Shown]]  # of the tracked norm layers, if they were asked
    sight: Sight | None = None  # what the batch looks like

    @property
    def is_new_domain(self) -> Tensor | None:
        """Whether it looks like a new domain; 0-dim, of truth values."""
        return None if self.sight is None else self.sight.domain.begins

    @property
    def domain(self) -> Domain | None:
        """Where it comes from."""
        return None if self.sight is None else self.sight.domain

    @property
    def logs(self) -> Tensor:
        """What was said; (B, experts asked, classes)."""
        return torch.stack([self.said[expert] for expert in sorted(self.said)], 1)


@register("grotta+")
class GRoTTAPlus(Adapter):
    """The recommended method: it includes the untouched model, which leads where nothing has changed.

    One set of weights is read in four ways, which differ in their batch normalisation alone:

    - *source*: the statistics of the training set; right where nothing has changed;
    - *instance*: each image is corrected by its own statistics where these clearly differ (IABN); needs no batch, no
      memory and no time, whatever the labels do;
    - *bold*: the same, where an image differs at all; better where little is left of what the network was trained on.
      That shrinks what sets an image apart, so its answers are too unsure, and are made surer;
    - *tracked*: the statistics follow the stream (a gated filter in every layer), at once when a domain changes, slowly
      where batches are poor samples of the classes. Where labels come in random order, its affine parameters are
      trained to tell more, on a small memory of recent images of all classes (:class:`FairTraining`).

    Their log-probabilities are averaged, each weighted by how far it can be relied on (:class:`TrackRecord`): an expert
    must tell something (not the same about every image), must be sure, and must be constant where labels cluster in
    time. A reading that fails loses its weight within a few batches, and on clean images the source model leads. When
    the images look like another domain (:class:`DomainWatch`), what was known of the readings is forgotten at once. The
    answer is then read in the light of its neighbours in time (``output="stream"``).

    What its labels explain of a batch is not taken for a new domain: the tracked statistics are corrected by the mean
    of each class, which is learned from the method's own answers.

    A model without batch normalisation is read in one way, as it is, and where labels come in random order in two: as
    it is, and with trained norm layers.

    Args:
        experts: how many of the readings are asked for an answer. With fewer, those that did best when all were last
            asked; about the first batch, all.
        probe_every: with fewer than all experts, the others are asked too about every n-th batch, when it is learned.
        train: train the tracked reading, where labels come in random order. That takes a backward pass over 64 images
            at a time, however small the batches are.
        lr: of the training, with Adam; half of it where there are more than 64 classes.
        k: by how many standard errors an image must differ to be corrected (instance) ...
        bold_k: ... and the same of the bold reading.
        bold_sharpness: by what the logits of the bold reading are multiplied.
        memory: share of what was seen of the experts that is kept over 64 images.
        **options: those of :class:`grotta.methods.Adapter`.

    ``adapter.last.extra`` has ``estimated_accuracy`` (the mean confidence of the answers), ``source_accuracy`` (of the
    untouched model: how often it agrees with them), ``source_weight``, the output's ``shift`` and ``temperature``, and
    ``new_domain``: 1 when the images have suddenly changed, to what was never seen or to what was seen before, else 0.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = GRoTTAPlus(net)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "GRoTTA+", 100, 7.5
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "fast": {"experts": 2, "probe_every": 8, "train": False},
        "lite": {"experts": 1, "probe_every": 48, "train": False},
    }
    contains_source = True
    order: Tensor
    watched: Tensor
    probed: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        experts: int = 4,
        probe_every: int = 8,
        train: bool = True,
        lr: float = 4e-3,
        k: float = 5.0,
        bold_k: float = 1.0,
        bold_sharpness: float = 1.5,
        memory: float = 0.35,
        output: str | None = "stream",
        **options: Any,
    ) -> None:
        super().__init__(model, output=output, **options)
        self.experts = check_whole("experts", experts, at_least=1)
        if self.experts > len(READINGS):
            raise ValueError(f"experts must be at most {len(READINGS)}, got {experts}")
        self.probe_every = check_whole("probe_every", probe_every, at_least=1)
        self.trains = check_flag("train", train)
        self.lr = check_positive("lr", lr)
        self.k = check_at_least("k", k, 0)
        self.bold_k = check_at_least("bold_k", bold_k, 0)
        self.bold_sharpness = check_positive("bold_sharpness", bold_sharpness)
        self.keeps = check_in_unit_interval("memory", memory)
        self.reset()

    def build(self) -> None:
        """The readings, on one set of weights, and their agreement so far."""
        norms = [m for m in self.model.modules() if isinstance(m, _BatchNorm)]
        has_statistics = all(m.running_mean is not None for m in norms)
        self.source = self.fixed_network()
        self.trainer: FairTraining | None = None
        if has_statistics and (norms or self.trains):
            self.tracked = self.network(gated(self.num_classes)).requires_grad_(False)
            if self.trains:
                self._build_trainer()
        self.watch = DomainWatch(self.num_classes, device=self.device, dtype=self.wide)
        self.single = not has_statistics or (not norms and self.trainer is None)
        if self.single:
            return
        self.readings = READINGS if norms else WITHOUT_STATISTICS
        if norms:
            self.instance = self.fixed_network(iabn(self.k))
            self.bold = self.fixed_network(iabn(self.bold_k))
        self.record = TrackRecord(len(self.readings), self.num_classes, device=self.device, dtype=self.wide)
        order = [self.readings.index(name) for name in FIRST_ORDER if name in self.readings]
        self.register_buffer("order", torch.tensor(order, device="cpu"))  # best first
        # Images, their confidence, and of those that the source was asked about: how many, and how often it agreed.
        self.register_buffer("watched", torch.zeros(4, device=self.device, dtype=self.wide))
        # How sure those who lead were when all were last asked, how sure they are lately, and the images since.
        self.register_buffer("probed", torch.zeros(3, device=self.device, dtype=self.wide))

    def _build_trainer(self) -> None:
        factory = {"device": self.device, "dtype": self.wide}
        self.trainer = fair_training(self.tracked, self.num_classes, self.lr, **factory)
        if self.trainer is not None:
            self.memory, self.optimizer = self.trainer.memory, self.trainer.optimizer

    @property
    def asks_all(self) -> bool:
        """Whether every reading is asked about every batch."""
        return self.experts >= len(self.readings)

    def infer(self, inputs: Tensor) -> Prediction:
        """Ask the experts and pool what they say."""
        if self.single:
            logits, features = self.source(inputs)
            seen = self._looked_at(inputs, Seen({SOURCE: logits.to(self.wide).log_softmax(1)}, []))
            return Prediction(logits, features, extra=seen, domain=seen.domain)
        everyone = self.asks_all or self.step == 0  # nobody leads yet
        asked = list(range(len(self.readings))) if everyone else sorted(self.order[: self.experts].tolist())
        seen, features = self._ask(asked, inputs, Seen({}, []))
        seen = self._looked_at(inputs, seen)
        assert features is not None
        with torch.autocast(self.device.type, enabled=False):
            if len(asked) == 1:
                return Prediction(seen.said[asked[0]], features, extra=seen, domain=seen.domain)
            counts = self._record_after(seen) if everyone else self.record.counts()
            weights = counts.weights()[asked]
            pooled = torch.einsum("e,bec->bc", weights / weights.sum(), seen.logs)
        return Prediction(pooled, features, extra=seen, domain=seen.domain)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Move the tracked statistics and the record on, and train; when it is time, ask those who were not asked."""
        seen = prediction.extra
        assert isinstance(seen, Seen)
        assert seen.sight is not None
        sight = self.watch.take(seen.sight, probs)
        seen = seen._replace(sight=sight)
        news = {"new_domain": sight.domain.begins.to(self.wide)}
        if self.single:
            return Learned(numbers=news, domain=sight.domain)
        probes = self.asks_all or self._time_to_ask(prediction.logits, seen)
        if probes and (others := [expert for expert in range(len(self.readings)) if expert not in seen.said]):
            seen, _ = self._ask(others, batch.inputs, seen)
        with torch.autocast(self.device.type, enabled=False):
            if probes:
                self.record.take(self._record_after(seen))  # before those who wait in the gates are let in
            move_gates(seen.observations, probs, seen.is_new_domain)
            weights = self.record.counts().weights()
            if probes and not self.asks_all:
                best = weights.argsort(descending=True)
                self.order.copy_(best)
                lead = best[: self.experts]
                pooled = torch.einsum("e,bec->bc", weights[lead] / weights[lead].sum(), seen.logs[:, lead])
                self.probed[:2] = pooled.softmax(1).amax(1).mean()
                self.probed[2] = 0
            self._watch(probs, seen.said.get(SOURCE))
        if self.trainer is not None and bool(news["new_domain"]):
            self.trainer.begin_domain()
        loss = self._train(batch, prediction.logits, probs)
        images, confidence, compared, agreed = self.watched
        return Learned(
            adapted=bool(seen.observations) or loss is not None,
            loss=loss,
            bank_size=None if self.trainer is None else len(self.trainer.memory),
            numbers={
                **news,
                "estimated_accuracy": confidence / images,
                "source_accuracy": agreed / compared.clamp_min(1e-6),
                "source_weight": weights[SOURCE],
            },
            domain=sight.domain,
        )

    def _train(self, batch: Batch, said: Tensor, probs: Tensor) -> Tensor | None:
        """Remember the batch: ``said``, then ``probs``, which went out; when it is time, train the tracked reading."""
        if self.trainer is None:
            return None
        self.trainer.remember(batch.images, probs, said)
        if not self.trainer.is_due:
            return None
        images, _ = self.trainer.memory.contents()
        counts = self.record.counts()
        clustered = float(counts.constancy()[1])
        if not counts.pairs:  # single images, asked about now and then: who knows
            clustered = max(clustered, FAINTLY)
        return self.trainer.step(self.to_input(images), clustered)

    def _ask(self, experts: list[int], inputs: Tensor, before: Seen) -> tuple[Seen, Tensor | None]:
        """What was seen ``before``, with what ``experts`` make of ``inputs``; and the features of the last one run."""
        seen, features = before._replace(said=dict(before.said)), None
        for expert in experts:
            name = self.readings[expert]
            if name == "tracked" and not self._follows():  # then it is the source
                if SOURCE in seen.said:
                    seen.said[expert] = seen.said[SOURCE]
                    continue
                name = "source"
            if name == "tracked":
                seen = self._looked_at(inputs, seen)
                with observing(self._labels_so_far(seen), seen.is_new_domain) as observations:
                    logits, features = self.tracked(inputs)
                seen = seen._replace(observations=observations)
            else:
                logits, features = getattr(self, name)(inputs)
            with torch.autocast(self.device.type, enabled=False):
                logits = logits.to(self.wide) * (self.bold_sharpness if name == "bold" else 1)
                seen.said[expert] = logits.log_softmax(1)
        return seen, features

    def _looked_at(self, inputs: Tensor, seen: Seen) -> Seen:
        """With what a batch looks like, as soon as somebody has said something about its classes."""
        if seen.sight is not None or not seen.said:
            return seen
        with torch.autocast(self.device.type, enabled=False):
            labels = self._labels_so_far(seen) if len(seen.said) > 1 else next(iter(seen.said.values())).exp()
            return seen._replace(sight=self.watch.look(inputs, labels))

    def _follows(self) -> bool:
        """Whether the tracked reading may differ from the source."""
        trained = self.trainer is not None and not self.trainer.is_untouched
        return trained or len(self.readings) > len(WITHOUT_STATISTICS)

    def _labels_so_far(self, seen: Seen) -> Tensor | None:
        """What the experts before the tracked one make of the batch, as far as they can be relied on; (B, classes).

        The rest is uniform, which corrects nothing.
        """
        if not seen.said:
            return None
        with torch.autocast(self.device.type, enabled=False):
            weights = self.record.counts().weights()[[*sorted(seen.said), len(self.readings) - 1]]
            others = weights[:-1]
            share = (2 * others.sum() / weights.sum()).clamp(0, 1)
            pooled = torch.einsum("e,bec->bc", others / others.sum(), seen.logs)
            return torch.lerp(torch.full_like(pooled, 1 / self.num_classes), pooled.softmax(1), share)

    def _time_to_ask(self, pooled: Tensor, seen: Seen) -> bool:
        """Whether all experts should be asked now; moves on how sure those who lead are."""
        with torch.autocast(self.device.type, enabled=False):
            sure = pooled.to(self.wide).softmax(1).amax(1).mean()
            self.probed[1].lerp_(sure, min(1.0, len(pooled) / SAMPLES))
        self.probed[2].add_(len(pooled))
        if self.step % self.probe_every == 0:
            return True
        then, now, images = self.probed.tolist()
        if seen.sight is not None and bool(seen.sight.domain.begins):
            return True
        return bool(images >= 2 * SAMPLES and abs(now - then) > NEWS)

    def _record_after(self, seen: Seen) -> Counts:
        """The experts' record after a batch of which all of them have said something."""
        counts, logs = self.record.counts(), seen.logs
        if seen.sight is not None:
            counts = counts.renewed(seen.sight.domain.begins, seen.sight.waiting)
        if self.asks_all:
            return counts.after(logs, self.keeps, len(logs))
        images = float(self.probed[2].clamp_min(len(logs)))  # a probe stands for the batches since the one before
        return counts.after(logs, self.keeps, images, following=False)

    def _watch(self, probs: Tensor, source: Tensor | None) -> None:
        """Add a batch, of which the source says ``source`` if it was asked, to the sums behind the estimates."""
        confidence, answers = probs.to(self.watched.dtype).max(1)
        keep = WATCHED ** (len(probs) / SAMPLES)
        images, sure = self.watched[:2].mul_(keep)
        images.add_(len(probs))
        sure.add_(confidence.sum())
        if source is not None:
            compared, agreed = self.watched[2:].mul_(keep)
            compared.add_(len(probs))
            agreed.add_((answers == source.argmax(1)).sum())
