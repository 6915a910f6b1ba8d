"""RoTTA: robust test-time adaptation in dynamic scenarios (Yuan, Xie and Li, 2023)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_in_unit_interval
from grotta.memory import CSTU
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.cadence import SampleCadence
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import ema_, trained_affine
from grotta.nn import rbn, tracking


@register("rotta")
class RoTTA(SampleCadence):
    """Robust statistics, and a teacher that teaches on a memory of recent, certain and balanced samples.

    Teacher T and student S share every weight but those of their robust norm layers. A step on the batch X_t:

    1. T predicts P with its statistics held still; P goes out.
    2. X_t goes into the memory (CSTU) under argmax P, with the entropy of P as uncertainty. After every
       ``update_every``-th *sample*, even in the middle of a batch:
    3. S learns on a strong view of the whole memory what T predicts for the plain one, less from older images:
       L = mean E(a) CE(p_T, p_S) with E(a) = e^-a / (1 + e^-a) and a = age / N, one Adam step on S's affine
       parameters. The memory moves the statistics of both.
    4. T's affine parameters follow S's by an exponential moving average; statistics do not.

    Args:
        alpha: momentum of the normalisation statistics.
        nu: how far the teacher follows the student in an update.
        lambda_t, lambda_u: weight of timeliness and of uncertainty in the memory's scores.
        capacity: images in the memory, N.
        update_every: samples from one update to the next.
        lr: of Adam.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = RoTTA(net)
    >>> [(adapter(torch.rand(40, 3, 16, 16)).shape[0], adapter.last.adapted) for _ in range(2)]
    [(40, False), (40, True)]
    """

    title, place, cost = "RoTTA", 80, 5.0
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {}}
    augments = True
    memory: CSTU

    def __init__(
        self,
        model: nn.Module,
        *,
        alpha: float = 0.05,
        nu: float = 0.001,
        lambda_t: float = 1.0,
        lambda_u: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(model, alpha=alpha, **options)
        self.nu = check_in_unit_interval("nu", nu)
        self.lambda_t = check_at_least("lambda_t", lambda_t, 0)
        self.lambda_u = check_at_least("lambda_u", lambda_u, 0)
        self.reset()

    def build(self) -> None:
        """Two networks on one set of weights, an empty memory, an optimizer for the student's affine parameters."""
        super().build()
        norm = rbn(self.alpha)
        self.teacher, self.student = self.network(norm), self.network(norm)
        trained = trained_affine(self.student)
        self._trained = list(trained.values())
        self._followers = [p for name, p in self.teacher.named_parameters() if name in trained]
        self.teacher.requires_grad_(False)
        self.optimizer = make_optimizer("adam", self._trained, self.lr)
        self.memory = CSTU(self.capacity, self.num_classes, self.lambda_t, self.lambda_u)

    def infer(self, inputs: Tensor) -> Prediction:
        """The teacher's prediction, its statistics held still."""
        return Prediction(*self.teacher(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember the batch, and adapt to the memory wherever the count of samples says so."""
        plain = prediction.logits.to(self.wide).softmax(1)
        labels, uncertainties = plain.argmax(1), GF.entropy(plain)

        def remember(piece: slice) -> None:
            self.memory.add(batch.images[piece], labels[piece], uncertainties[piece])

        return self._learn_in_pieces(labels, remember)

    def _update(self) -> Tensor:
        """One step of the student on the whole memory; returns the loss."""
        images, ages = self.memory.contents()
        inputs = self.to_input(images)
        weights = torch.sigmoid(-ages.to(self.wide) / self.capacity)  # e^-a / (1 + e^-a)
        with tracking(self.teacher):
            teacher = self.teacher(inputs)[0].to(self.wide).softmax(1)
        with torch.enable_grad(), tracking(self.student):
            logits = self.student(self.strong_view(inputs))[0].to(self.wide)
            loss = GF.distillation_loss(teacher, logits, weights=weights)
        loss = descend(self.optimizer, loss)
        ema_(self._followers, self._trained, self.nu)
        return loss
