"""TRIBE: tri-net self-training with balanced normalization for real-world test-time adaptation (Su et al., 2024)."""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_between, check_in_unit_interval, check_positive
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.by_classes import by_classes
from grotta.methods.filtering import entropy_limit, mean_over
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import trained_affine
from grotta.nn import Network, balanced, labelled


@register("tribe")
class TRIBE(Adapter):
    """Three networks with class-balanced statistics: the student learns the teacher's labels, the anchor stabilises
    both.

    Teacher T and student S share all parameters, the anchor A has the source's; each has balanced norm layers with
    statistics of its own. A step on the batch X_t:

    1. T predicts P with its statistics held still; P goes out. y = argmax P are the labels that move the statistics.
    2. T on X_t, S on a strong view of it and A on X_t, each moving its statistics class by class.
    3. Keep the samples with H(p_T) < ``margin`` ln C, p_T being T's second answer. If none is left, no step is taken.
    4. One Adam step on the affine parameters that T and S share down the mean over the kept of
       CE(S, argmax T) + ``anchor`` mean_c (T_c - A_c)^2, of logits, with the gradient through S and T.

    Args:
        eta: momentum of the statistics of a class.
        gamma: share of a class's step that goes to all classes alike.
        margin: largest entropy to learn from, as a fraction of ln C. Where one of these three is not given, it is the
            published one for 10, 100 or 1000 classes, whichever is nearest: eta 0.01, 0.05 or 0.5; gamma 0, 0.1 or
            0.5; margin 0.05, 0.2 or 0.4.
        anchor: weight of the anchor's answers.
        lr: of Adam.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = TRIBE(net, margin=1.0)
    >>> adapter(torch.rand(4, 3, 16, 16)).shape, adapter.last.loss > 0
    (torch.Size([4, 5]), True)
    """

    title, place, cost = "TRIBE", 150, 8.0
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {"eta": 0.01, "gamma": 0.0, "margin": 0.05},
        "official-cifar100": {"eta": 0.05, "gamma": 0.1, "margin": 0.2},
        "official-imagenet": {"eta": 0.5, "gamma": 0.5, "margin": 0.4},
    }
    augments = True
    optimizer: torch.optim.Optimizer

    def __init__(
        self,
        model: nn.Module,
        *,
        eta: float | None = None,
        gamma: float | None = None,
        margin: float | None = None,
        anchor: float = 0.5,
        lr: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        published = by_classes(self.num_classes, (0.01, 0.0, 0.05), (0.05, 0.1, 0.2), (0.5, 0.5, 0.4))
        self.eta = check_between("eta", published[0] if eta is None else eta, 0, 1)
        self.gamma = check_in_unit_interval("gamma", published[1] if gamma is None else gamma)
        self.margin = check_in_unit_interval("margin", published[2] if margin is None else margin)
        self.anchor_weight = check_at_least("anchor", anchor, 0)
        self.lr = check_positive("lr", lr)
        self.reset()

    def build(self) -> None:
        """Three networks on one set of weights, two of them with the same affine parameters, and their optimizer."""
        norm = balanced(self.num_classes, self.eta, self.gamma)
        self.student, self.teacher, self.anchor = self.network(norm), self.network(norm), self.network(norm)
        trained = trained_affine(self.student)
        self.teacher.requires_grad_(False)
        self.anchor.requires_grad_(False)
        for name, parameter in trained.items():
            path, _, own_name = name.rpartition(".")
            setattr(self.teacher.get_submodule(path), own_name, parameter)
        self.optimizer = make_optimizer("adam", trained.values(), self.lr)

    def infer(self, inputs: Tensor) -> Prediction:
        """The teacher's prediction, its statistics held still."""
        return Prediction(*self.teacher(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Move the statistics of all three; one step of the shared parameters if the teacher is sure of any sample."""
        labels = prediction.logits.argmax(1)
        view = self.strong_view(batch.inputs)
        with torch.enable_grad():
            teacher = self._ask(self.teacher, batch.inputs, labels)
            student = self._ask(self.student, view, labels)
        anchor = self._ask(self.anchor, batch.inputs, labels)
        kept = GF.softmax_entropy(teacher.detach()) < entropy_limit(self.margin, self.num_classes)
        if not bool(kept.any()):
            return Learned(adapted=True)
        with torch.enable_grad():
            losses = F.cross_entropy(student, teacher.argmax(1), reduction="none")
            losses = losses + self.anchor_weight * (teacher - anchor).square().mean(1)
            loss = mean_over(losses, kept)
        return Learned(adapted=True, loss=descend(self.optimizer, loss))

    def _ask(self, network: Network, inputs: Tensor, labels: Tensor) -> Tensor:
        """Logits (B, classes) of ``network``, whose statistics move by images of the classes ``labels``."""
        with labelled(network, labels):
            logits: Tensor = network(inputs)[0]
        return logits.to(self.wide)
