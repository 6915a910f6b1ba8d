"""PeTTA: persistent test-time adaptation in recurring testing scenarios (Hoang, Vo and Do, 2024)."""

import logging
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_in_unit_interval, check_one_of, check_whole
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.class_features import ClassMoments, class_moments, merge
from grotta.methods.optimise import descend
from grotta.methods.origin import Origin
from grotta.methods.registry import register
from grotta.methods.rotta import RoTTA
from grotta.methods.teacher import ema_
from grotta.nn import Network, rbn, tracking

_log = logging.getLogger("grotta")


@register("petta")
class PeTTA(RoTTA):
    """RoTTA that senses how far it has drifted from the source, and adapts less the farther it has.

    Teacher T, student S and source A share every weight but those of their robust norm layers. A step on the batch X_t:

    1. T predicts P with its statistics held still; P goes out. X_t goes into RoTTA's memory (CSTU).
    2. T, S and A on the whole memory and S on a strong view of it, all moving their statistics.
    3. Divergence g = 1 - exp(-mean (mu^ - mu)^2 / (s2 + 1e-6)) over the classes predicted in X_t, with the source's
       mean mu and variance s2 of a class's features. Then mu^ <- (1 - ``beta``) mu^ + ``beta`` mean of T's features
       of that class in X_t; it starts at mu.
    4. One Adam step on S's affine parameters theta down
       L - ``lam_0`` g mean cos(theta, theta_0) + ``anchor`` CE(A, S strong), the cosine by tensor. L is a quarter of
       CE(T, S) + CE(S, T) + CE(T, S strong) + CE(S strong, T), or with ``loss="ce"`` just CE(T, S strong).
    5. T's affine parameters follow S's by an exponential moving average with the rate (1 - g) ``nu``.

    mu and s2 come from clean images of the source, shown to :meth:`calibrate` without labels; they survive
    :meth:`reset`. Without them, and for classes with fewer than two such images, the first ``reference`` or more
    samples predicted as the class stand in, and the class has no part in g until then: this is our own addition, and
    the log says so once.

    Args:
        alpha, nu, lambda_t, lambda_u, capacity, lr: as of :class:`RoTTA`; ``update_every`` has no meaning here.
        lam_0: weight of the source's parameters at the largest divergence.
        anchor: weight of the source's answers.
        beta: momentum of the tracked class means.
        loss: ``"sce"``, or ``"ce"`` as published for large data sets.
        reference: samples of a class that stand in for the source's.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = PeTTA(net)
    >>> adapter.calibrate(torch.rand(32, 3, 16, 16))
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.adapted
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "PeTTA", 160, 8.6
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}, "official-imagenet": {"loss": "ce"}}
    source_count: Tensor
    source_mean: Tensor
    source_var: Tensor
    class_mean: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        lam_0: float = 10.0,
        anchor: float = 1.0,
        beta: float = 0.05,
        loss: str = "sce",
        reference: int = 64,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.lam_0 = check_at_least("lam_0", lam_0, 0)
        self.anchor = check_at_least("anchor", anchor, 0)
        self.beta = check_in_unit_interval("beta", beta)
        self.loss = check_one_of("loss", loss, ("sce", "ce"))
        self.reference = check_whole("reference", reference, at_least=2)

    def build(self) -> None:
        """As RoTTA, with the source, and with what is known of its features."""
        super().build()
        self.source = self.network(rbn(self.alpha)).requires_grad_(False)
        self.origin = Origin(self._trained)
        if "source_count" in self._buffers:
            stale = self.source_count.isfinite()
            for moment in (self.source_count, self.source_mean, self.source_var):
                moment.masked_fill_(stale, 0)
        else:
            width = feature_width(self.model.get_submodule(self.feature_layer))
            for name, size in (("count", 1), ("mean", width), ("var", width)):
                zeros = torch.zeros(self.num_classes, size, dtype=self.wide, device=self.device)
                self.register_buffer(f"source_{name}", zeros)
        self.register_buffer("class_mean", self.source_mean.clone())

    def calibrate(self, images: Tensor, batch_size: int = 64) -> None:
        """Take the source's features from its clean ``images`` (n, C, H, W), uint8 or float in [0, 1]."""
        if self.optimizer is None:
            return  # nothing is trained, so nothing can drift
        network, moments = self.network(), None
        for inputs in self.in_batches(images, batch_size):
            with torch.inference_mode():
                logits, features = network(inputs)
            part = class_moments(features.to(self.wide), logits.argmax(1), self.num_classes)
            moments = part if moments is None else merge(moments, part)
        assert moments is not None
        enough = moments.samples > 1
        with self._turns.exclusive():
            self.source_count.copy_(torch.where(enough, torch.inf, 0))  # no count of samples reaches it
            self.source_mean.copy_(moments.mean.where(enough, 0))
            self.source_var.copy_(moments.var.where(enough, 0))
            self.class_mean.copy_(self.source_mean)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember the batch, sense the divergence and adapt to the memory."""
        if self.step == 0 and not bool(self.source_count.any()):
            _log.warning("petta: no clean images were given to calibrate(): the first predictions stand in for them")
        plain = prediction.logits.to(self.wide).softmax(1)
        labels = plain.argmax(1)
        self.memory.add(batch.images, labels, GF.entropy(plain))
        divergence = self._sense(class_moments(prediction.features.to(self.wide), labels, self.num_classes))
        loss = self._update_by(divergence)
        return Learned(adapted=True, loss=loss, bank_size=len(self.memory))

    def _sense(self, now: ClassMoments) -> Tensor:
        """The divergence g of the classes predicted in the batch; their tracked means, or the source's, move."""
        source = ClassMoments(self.source_count, self.source_mean, self.source_var)
        present = now.samples > 0
        known = present & (source.samples >= self.reference)
        apart = ((self.class_mean - source.mean).square() / (source.var + 1e-6)).mean(1, keepdim=True)
        divergence = 1 - (-apart.where(known, 0).sum() / known.sum().clamp_min(1)).exp()
        tracked = torch.lerp(self.class_mean, now.mean, self.beta)
        both = merge(source, now)
        new = present & ~known
        self.class_mean.copy_(torch.where(known, tracked, torch.where(new, both.mean, self.class_mean)))
        for buffer, moment in zip(source, both):
            buffer.copy_(torch.where(new, moment, buffer))
        return divergence

    def _update_by(self, divergence: Tensor) -> Tensor:
        """One step of the student on the whole memory, and one of the teacher after it; returns the loss."""
        inputs = self.to_input(self.memory.contents()[0])
        teacher = self._ask(self.teacher, inputs)
        with torch.set_grad_enabled(self.loss == "sce"):
            student = self._ask(self.student, inputs)
        source = self._ask(self.source, inputs)
        with torch.enable_grad():
            strong = self._ask(self.student, self.strong_view(inputs))
            if self.loss == "sce":
                loss = (symmetric(teacher, student) + symmetric(teacher, strong)) / 4
            else:
                loss = GF.distillation_loss(teacher.softmax(1), strong)
            loss = loss - self.lam_0 * divergence * self.origin.mean_cosine()
            loss = loss + self.anchor * GF.distillation_loss(source.softmax(1), strong)
        loss = descend(self.optimizer, loss)
        ema_(self._followers, self._trained, self.nu * (1 - float(divergence)))
        return loss

    def _ask(self, network: Network, inputs: Tensor) -> Tensor:
        """Logits (B, classes) of ``network``, whose statistics move."""
        with tracking(network):
            logits: Tensor = network(inputs)[0]
        return logits.to(self.wide)


def symmetric(left: Tensor, right: Tensor) -> Tensor:
    """Mean over the batch of CE(left, right) + CE(right, left), of logits (B, C)."""
    return GF.distillation_loss(left.softmax(1), right) + GF.distillation_loss(right.softmax(1), left)


def feature_width(classifier: nn.Module) -> int:
    """Width of the features that go into ``classifier``.

    >>> feature_width(nn.Linear(8, 5))
    8
    """
    weight = getattr(classifier, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        raise ValueError(
            "feature_layer must name a linear or convolutional layer, whose weight tells the width of the features, "
            f"got {type(classifier).__name__}"
        )
    return weight.shape[1]
