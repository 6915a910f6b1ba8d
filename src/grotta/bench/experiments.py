"""The toy methods of the paper's figures: entropy minimisation, directly on the stream or from a balanced bank."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_one_of, check_positive, check_whole
from grotta.memory import CategoryBalancedBank
from grotta.methods import Adapter, Batch, Learned, Prediction, list_methods, register
from grotta.methods.teacher import trained_affine
from grotta.nn import gpre_rbn, tracking
from grotta.nn.robust_bn import Gradient

LearnsFrom = Literal["batch", "bank"]


class EntropyMinimisation(Adapter):
    """Minimise the mean entropy, with one Adam step per batch on the affine parameters of the norm layers.

    It shows one thing at a time, so it has neither teacher nor output adaptation.

    Args:
        learns_from: the current ``"batch"``, or a random batch from a category-balanced ``"bank"``.
        statistics: ``"source"`` keeps those of the source model; ``"tracked"`` lets them follow what is learned from.
        gradient: form of the gradient through tracked statistics, see :class:`grotta.nn.RobustBatchNorm`.
        alpha: momentum of tracked statistics.
        capacity: images in the bank; 1 means one per class.
        bank_batch: size of a random batch from the bank.
        lr: of Adam.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        learns_from: LearnsFrom = "batch",
        statistics: Literal["source", "tracked"] = "source",
        gradient: Gradient = "exact",
        alpha: float = 0.05,
        capacity: int = 1,
        bank_batch: int = 64,
        lr: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.learns_from = check_one_of("learns_from", learns_from, get_args(LearnsFrom))
        self.tracked = check_one_of("statistics", statistics, ("source", "tracked")) == "tracked"
        self.gradient: Gradient = gradient
        self.alpha = alpha
        self.capacity = check_whole("capacity", capacity, at_least=1)
        self.bank_batch = check_whole("bank_batch", bank_batch, at_least=1)
        self.lr = check_positive("lr", lr)
        self.reset()

    def build(self) -> None:
        """One network, its optimizer and, if it learns from one, an empty bank."""
        # Statistics that do not move are constants, so no gradient form of batch normalisation applies.
        self.student = self.network(gpre_rbn(self.alpha, self.gradient if self.tracked else "none"))
        self.optimizer = torch.optim.Adam(trained_affine(self.student).values(), lr=self.lr, foreach=True)
        if self.learns_from == "bank":
            self.memory = self.bank = CategoryBalancedBank(self.capacity, self.num_classes)

    def infer(self, inputs: Tensor) -> Prediction:
        """Predict with the statistics held still."""
        return Prediction(*self.student(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """One step down the entropy."""
        inputs, bank_size = batch.inputs, None
        if self.memory is not None:
            self.bank.add(batch.images, prediction.logits.argmax(1))
            bank_size = self.bank.counts().sum()
            inputs = self.to_input(self.bank.sample(self.bank_batch, self.generator))
        with torch.enable_grad(), tracking(self.student, self.tracked):
            loss = GF.softmax_entropy(self.student(inputs)[0].float()).mean()
        torch.autograd.backward(loss)
        assert self.optimizer is not None
        self.optimizer.step()
        self.optimizer.zero_grad()
        return Learned(adapted=True, loss=loss.detach(), bank_size=bank_size)


ENTROPY = "experiment-entropy"
_EXPERIMENTS: dict[str, type[Adapter]] = {ENTROPY: EntropyMinimisation}


def prepare(name: str) -> None:
    """Make ``name`` known to :func:`grotta.create` in this process if it is an experiment; other names are ignored.

    Experiments are not methods for users: they are in ``grotta.list_methods()`` only once one was asked for.
    """
    if name in _EXPERIMENTS and name not in list_methods():
        register(name)(_EXPERIMENTS[name])
