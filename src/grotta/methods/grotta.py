"""GRoTTA: generalized robust test-time adaptation (Li, Yuan, Xie and Yang)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_flag, check_in_unit_interval, check_positive, check_whole
from grotta.memory import CategoryBalancedBank
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.registry import register
from grotta.methods.teacher import ema_, trained_affine
from grotta.nn import Network, gpre_rbn
from grotta.nn import tracking as moving_statistics
from grotta.nn.robust_bn import Gradient, check_gradient


@register("grotta")
class GRoTTA(Adapter):
    """Robust parameter adaptation on a balanced memory, and output adaptation to the biased stream.

    Teacher T, student S and source A share every weight but those of their GpreRBN layers. A step on the batch X_t:

    1. T predicts P with its statistics held still; the output is P refined by the batch's structure (BGOA).
    2. X_t goes into the category-balanced bank under argmax P; X^M is a random batch out of it.
    3. S learns, on strong views, what T and A predict for the plain images:
       l(x) = CE(p_T, p_S) + lambda_re CE(p_A, p_S), minimised as l(X^M) + lambda_batch l(X_t) by one Adam step on
       S's affine parameters. X^M moves the statistics of T, S and A; X_t moves none.
    4. T's affine parameters follow S's by an exponential moving average.

    Args:
        alpha: momentum of the normalisation statistics.
        nu: how far the teacher follows the student in a step.
        lambda_batch: weight of the current batch in the loss; 0 saves its passes.
        lambda_re: weight of the source model in the loss; 0 saves its passes.
        capacity: images in the bank, N; every class has room for ceil(N / classes).
        k, affinity, sigma, lam: of the output adaptation, see ``grotta.functional.bias_guided_refine``.
        lr: of Adam.
        bank_batch: size of X^M.
        update_every: adapt on every n-th batch only.
        gradient: form of the gradient through the norm layers, ``"exact"``, ``"literal"`` or ``"none"``.
        balanced: draw X^M from the bank; if not, X^M is X_t itself (ablation a).
        train: train the student; if not, only statistics are adapted (ablations a and b).
        per_class: divide the losses by the number of classes, as the paper's equations do; only a scale under Adam.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> from torch import nn
    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = GRoTTA(net, capacity=100)
    >>> probs = adapter(torch.rand(4, 3, 16, 16))
    >>> adapter.last.bank_size, adapter.last.adapted
    (4, True)
    """

    title, place, cost = "GRoTTA", 90, 7.0
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {},
        "fast": {"lambda_batch": 0.0, "bank_batch": 16},  # a quarter of the cost
    }
    augments = True

    def __init__(
        self,
        model: nn.Module,
        *,
        alpha: float = 0.05,
        nu: float = 0.001,
        lambda_batch: float = 0.01,
        lambda_re: float = 0.1,
        capacity: int = 1024,
        k: int = 5,
        lr: float = 1e-3,
        bank_batch: int = 64,
        update_every: int = 1,
        gradient: Gradient = "exact",
        balanced: bool = True,
        train: bool = True,
        per_class: bool = False,
        output: str | None = "bias_guided",
        **options: Any,
    ) -> None:
        super().__init__(model, output=output, k=k, **options)
        self.alpha = check_in_unit_interval("alpha", alpha)
        self.nu = check_in_unit_interval("nu", nu)
        self.lambda_batch = check_at_least("lambda_batch", lambda_batch, 0)
        self.lambda_re = check_at_least("lambda_re", lambda_re, 0)
        self.capacity = check_whole("capacity", capacity, at_least=1)
        self.lr = check_positive("lr", lr)
        self.bank_batch = check_whole("bank_batch", bank_batch, at_least=1)
        self.update_every = check_whole("update_every", update_every, at_least=1)
        self.gradient = check_gradient(gradient)
        self.balanced = check_flag("balanced", balanced)
        self.train_student = check_flag("train", train)
        self.per_class = check_flag("per_class", per_class)
        self.reset()

    def build(self) -> None:
        """Three networks on one set of weights, an empty bank, an optimizer for the student's affine parameters."""
        norm = gpre_rbn(self.alpha, self.gradient)
        self.teacher = self.network(norm).requires_grad_(False)
        self.memory = self.bank = CategoryBalancedBank(self.capacity, self.num_classes)
        if self.train_student:
            self.student = self.network(norm)
            self.source = self.network(norm).requires_grad_(False)
            self._trained = trained_affine(self.student)
            self._followers = [p for name, p in self.teacher.named_parameters() if name in self._trained]
            self.optimizer = torch.optim.Adam(self._trained.values(), lr=self.lr, betas=(0.9, 0.999), foreach=True)

    def infer(self, inputs: Tensor) -> Prediction:
        """The teacher's prediction, its statistics held still."""
        return Prediction(*self.teacher(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember the batch; on every ``update_every``-th, adapt to a batch from the bank."""
        self.bank.add(batch.images, prediction.logits.argmax(1))
        bank_size = self.bank.counts().sum()
        if (self.step + 1) % self.update_every:
            return Learned(bank_size=bank_size)
        inputs = self.to_input(self.bank.sample(self.bank_batch, self.generator)) if self.balanced else batch.inputs
        teacher = self._ask(self.teacher, inputs, tracking=True)
        if self.optimizer is None:
            return Learned(adapted=True, bank_size=bank_size)
        loss = self._backward(inputs, teacher, weight=1.0, tracking=True)
        if self.lambda_batch > 0:
            # P stands for the teacher here: its pass on X_t is not repeated with the statistics that X^M moved.
            teacher = prediction.logits.to(self.wide).softmax(1)
            loss = loss + self._backward(batch.inputs, teacher, weight=self.lambda_batch, tracking=False)
        self.optimizer.step()
        self.optimizer.zero_grad()
        ema_(self._followers, list(self._trained.values()), self.nu)
        return Learned(adapted=True, loss=loss, bank_size=bank_size)

    def _backward(self, inputs: Tensor, teacher: Tensor, *, weight: float, tracking: bool) -> Tensor:
        """Add the gradient of ``weight`` l(inputs) to the student's; returns the weighted loss."""
        view = self.strong_view(inputs)
        with torch.enable_grad(), moving_statistics(self.student, tracking):
            logits = self.student(view)[0].to(self.wide)
            loss = GF.distillation_loss(self._target(inputs, teacher, tracking), logits, per_class=self.per_class)
            loss = weight * loss
        torch.autograd.backward(loss)
        return loss.detach()

    def _target(self, inputs: Tensor, teacher: Tensor, tracking: bool) -> Tensor:
        """p_T + lambda_re p_A: the two cross-entropies against the same student are one against their sum."""
        if self.lambda_re == 0:
            return teacher
        return teacher + self.lambda_re * self._ask(self.source, inputs, tracking=tracking)

    def _ask(self, network: Network, inputs: Tensor, *, tracking: bool) -> Tensor:
        """Probabilities (B, classes) of ``network`` for the plain images, without gradient."""
        with torch.inference_mode(), moving_statistics(network, tracking):
            logits: Tensor = network(inputs)[0]
        return logits.to(self.wide).softmax(1)
