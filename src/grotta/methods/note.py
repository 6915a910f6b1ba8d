"""NOTE: robust continual test-time adaptation against temporal correlation (Gong et al., 2022)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least, check_in_unit_interval, check_positive, check_whole
from grotta.memory import PBRS
from grotta.methods.base import Adapter, Batch, Learned, Prediction
from grotta.methods.cadence import pieces
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import trained_affine
from grotta.nn import iabn, tracking


@register("note")
class NOTE(Adapter):
    """Instance-aware normalisation, and entropy minimisation on a memory that is balanced over its predictions.

    The norm layers of the given model become instance-aware (IABN) without re-training. A step on the batch X_t:

    1. Predict P with the running statistics, every image by itself: the batch is only for speed. P goes out.
    2. X_t goes into the memory (PBRS) under argmax P. After every ``update_every``-th *sample*, in the middle of a
       batch if it so happens:
    3. One Adam step on the affine parameters down the mean over images and classes of -p log(p + 1e-6) on the whole
       memory, whose statistics are the reference there and move the running ones.

    Args:
        iabn_k: deviations from the reference, in standard errors, that IABN takes for chance.
        alpha: momentum of the normalisation statistics.
        capacity: images in the memory.
        update_every: samples from one update to the next.
        lr: of Adam.
        **options: those of :class:`grotta.methods.Adapter`.

    >>> pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), pool, nn.Linear(8, 5))
    >>> adapter = NOTE(net)
    >>> [(adapter(torch.rand(40, 3, 16, 16)).shape[0], adapter.last.adapted) for _ in range(2)]
    [(40, False), (40, True)]
    """

    title, place, cost = "NOTE", 70, 6.5
    presets: ClassVar[dict[str, dict[str, Any]]] = {"paper": {}, "official": {"lr": 1e-4}}
    optimizer: torch.optim.Optimizer
    memory: PBRS
    seen: Tensor

    def __init__(
        self,
        model: nn.Module,
        *,
        iabn_k: float = 4.0,
        alpha: float = 0.01,
        capacity: int = 64,
        update_every: int = 64,
        lr: float = 1e-3,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.iabn_k = check_at_least("iabn_k", iabn_k, 0)
        self.alpha = check_in_unit_interval("alpha", alpha)
        self.capacity = check_whole("capacity", capacity, at_least=1)
        self.update_every = check_whole("update_every", update_every, at_least=1)
        self.lr = check_positive("lr", lr)
        self.reset()

    def build(self) -> None:
        """One instance-aware network, an empty memory, an optimizer for the affine parameters."""
        self.student = self.network(iabn(self.iabn_k, self.alpha))
        self.optimizer = make_optimizer("adam", trained_affine(self.student).values(), self.lr)
        self.memory = PBRS(self.capacity, self.num_classes)
        self.register_buffer("seen", torch.tensor(0, device="cpu"))  # on the host, where it decides

    def infer(self, inputs: Tensor) -> Prediction:
        """Predict every image with the running statistics."""
        return Prediction(*self.student(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember the batch, and adapt to the memory wherever the count of samples says so."""
        labels = prediction.logits.argmax(1)
        losses = []
        for piece, due in pieces(int(self.seen), len(labels), self.update_every):
            self.memory.add(batch.images[piece], labels[piece], self.generator)
            if due:
                losses.append(self._update())
        self.seen += len(labels)
        loss = torch.stack(losses).mean() if losses else None
        return Learned(adapted=bool(losses), loss=loss, bank_size=len(self.memory))

    def _update(self) -> Tensor:
        """One step on the whole memory; returns the loss."""
        inputs = self.to_input(self.memory.contents())
        with torch.enable_grad(), tracking(self.student):
            probs = self.student(inputs)[0].to(self.wide).softmax(1)
            loss = GF.entropy(probs, eps=1e-6).mean() / self.num_classes
        return descend(self.optimizer, loss)
