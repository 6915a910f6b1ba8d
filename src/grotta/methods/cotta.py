"""CoTTA: continual test-time domain adaptation (Wang et al., 2022)."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_flag, check_in_unit_interval, check_positive, check_whole
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import ema_
from grotta.nn import batch_stats, own_parameters


@register("cotta")
class CoTTA(Adapter):
    """Learn from a slow teacher that averages over views when in doubt, and restore some weights now and then.

    Student, teacher and anchor (the source model) normalise by the batch; the first two own all their parameters,
    the anchor shares the model's. A step on the batch X_t:

    1. If the anchor's mean largest probability on X_t is below ``anchor_confidence``, the target is the mean of the
       teacher's logits over ``views`` strong views; else its logits for the plain images. The target goes out.
    2. One gradient step on all of the student's parameters down CE(target, student).
    3. The teacher follows the student by an exponential moving average.
    4. Every element of the student's parameters is reset to its source value with probability ``restore``.

    The passes of the views run only if they are used, and then replace the plain one; that decision is the one
    place where the host waits for the device. Features of an averaged target are averaged too.

    Args:
        lr: of the optimizer.
        optimizer: ``"adam"`` or ``"sgd"``, the latter with Nesterov momentum 0.9.
        nu: how far the teacher follows the student in a step.
        restore: RST, the probability that an element is restored.
        anchor_confidence: AP, below which the views are used.
        views: number of the teacher's passes in that case.
        symmetric: half of the loss is CE(student, target).
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> CoTTA(net, views=2)(torch.rand(4, 3, 16, 16)).shape
    torch.Size([4, 5])
    """

    title, place, cost = "CoTTA", 50, 38.0
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "official-cifar100": {"anchor_confidence": 0.72},
        "official-imagenet": {
            "optimizer": "sgd",
            "lr": 0.01,
            "restore": 0.001,
            "anchor_confidence": 0.1,
            "symmetric": True,
        },
    }
    augments = True
    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-3,
        optimizer: str = "adam",
        nu: float = 0.001,
        restore: float = 0.01,
        anchor_confidence: float = 0.92,
        views: int = 32,
        symmetric: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.lr = check_positive("lr", lr)
        self.optimizer_kind = optimizer
        self.nu = check_in_unit_interval("nu", nu)
        self.restore = check_in_unit_interval("restore", restore)
        self.anchor_confidence = check_in_unit_interval("anchor_confidence", anchor_confidence)
        self.views = check_whole("views", views, at_least=1)
        self.symmetric = check_flag("symmetric", symmetric)
        self.reset()

    def build(self) -> None:
        """The anchor on the model's weights, student and teacher on their own, an optimizer for all the student's."""
        norm = batch_stats()
        self.anchor, self.student, self.teacher = self.network(norm), self.network(norm), self.network(norm)
        self._trained = own_parameters(self.student)
        self._followers = own_parameters(self.teacher)
        self._origins = [p for p in self.anchor.parameters() if p.is_floating_point()]
        self.anchor.requires_grad_(False)
        self.teacher.requires_grad_(False)
        self.optimizer = make_optimizer(self.optimizer_kind, self._trained, self.lr)

    def infer(self, inputs: Tensor) -> Prediction:
        """The teacher's logits, over strong views if the anchor is in doubt of the batch."""
        confidence = self.anchor(inputs)[0].to(self.wide).softmax(1).amax(1).mean()
        if float(confidence) >= self.anchor_confidence:
            return Prediction(*self.teacher(inputs))
        passes = [self.teacher(self.strong_view(inputs)) for _ in range(self.views)]
        logits, features = (torch.stack(part).mean(0) for part in zip(*passes))
        return Prediction(logits, features)

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Student to target, teacher to student, some of the student back to the source."""
        target = prediction.logits.to(self.wide)
        with torch.enable_grad():
            logits = self.student(batch.inputs)[0].to(self.wide)
            loss = GF.distillation_loss(target.softmax(1), logits)
            if self.symmetric:
                loss = (loss + GF.distillation_loss(logits.softmax(1), target)) / 2
        loss = descend(self.optimizer, loss)
        ema_(self._followers, self._trained, self.nu)
        self._restore()
        return Learned(adapted=True, loss=loss)

    def _restore(self) -> None:
        """Put a random choice of the student's elements back to the source."""
        sizes = torch.tensor([p.numel() for p in self._trained], device="cpu")
        ends = sizes.cumsum(0)
        chosen = successes(int(ends[-1]), self.restore, self.generator)
        cuts = torch.searchsorted(chosen, ends)  # where one parameter's end and the next one's begin
        before = (ends - sizes).repeat_interleave(cuts.diff(prepend=torch.tensor([0], device="cpu")))
        parts = (chosen - before).to(self.device).tensor_split(cuts[:-1].tolist())
        for student, origin, places in zip(self._trained, self._origins, parts):
            where = torch.unravel_index(places, student.shape)
            student.index_put_(where, origin[where])


def successes(trials: int, probability: float, generator: torch.Generator) -> Tensor:
    """Which of ``trials`` independent trials succeed, in increasing order, int64.

    The gaps between successes are geometric, so only the successes are drawn: for the 36 million parameters of a
    wide network and a probability of 0.01, a hundredth of a mask's random numbers and of its way to the device.

    >>> successes(4, 1.0, torch.Generator().manual_seed(0))
    tensor([0, 1, 2, 3])
    """
    found = [torch.empty(0, dtype=torch.int64, device="cpu")]
    expected = trials * probability
    draws = math.ceil(expected + 5 * math.sqrt(expected)) + 1  # enough, except once in a million times
    scale = math.log1p(-probability) if probability < 1 else -math.inf
    last = -1 if probability > 0 else trials
    while last < trials:
        uniform = torch.rand(draws, generator=generator, dtype=torch.float64, device="cpu")
        gaps = (torch.log1p(-uniform) / scale).clamp_(max=trials).long() + 1
        found.append(gaps.cumsum(0) + last)
        last = int(found[-1][-1])
    positions = torch.cat(found)
    return positions[: int(torch.searchsorted(positions, trials))]
