"""NOTE: robust continual test-time adaptation against temporal correlation (Gong et al., 2022)."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from grotta import functional as GF
from grotta._check import check_at_least
from grotta.memory import PBRS
from grotta.methods.base import Batch, Learned, Prediction
from grotta.methods.cadence import SampleCadence
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.registry import register
from grotta.methods.teacher import trained_affine
from grotta.nn import iabn, tracking


@register("note")
class NOTE(SampleCadence):
    """Instance-aware normalisation, and entropy minimisation on a memory that is balanced over its predictions.

    The norm layers of the given model become instance-aware (IABN) without re-training. A step on the batch X_t:

    1. Predict P with the running statistics, each image on its own: batches are only for speed. P goes out.
    2. X_t goes into the memory (PBRS) under argmax P. After every ``update_every``-th *sample*, even in the middle
       of a batch:
    3. One Adam step on the affine parameters down the mean over images and classes of -p log(p + 1e-6) on the whole
       memory, whose statistics are the reference there and move the running ones.

    Args:
        iabn_k: deviations from the reference, in standard errors, that IABN ignores as noise.
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
    memory: PBRS

    def __init__(self, model: nn.Module, *, iabn_k: float = 4.0, alpha: float = 0.01, **options: Any) -> None:
        super().__init__(model, alpha=alpha, **options)
        self.iabn_k = check_at_least("iabn_k", iabn_k, 0)
        self.reset()

    def build(self) -> None:
        """One instance-aware network, an empty memory, an optimizer for the affine parameters."""
        super().build()
        self.student = self.network(iabn(self.iabn_k, self.alpha))
        self.optimizer = make_optimizer("adam", trained_affine(self.student).values(), self.lr)
        self.memory = PBRS(self.capacity, self.num_classes)

    def infer(self, inputs: Tensor) -> Prediction:
        """Predict every image with the running statistics."""
        return Prediction(*self.student(inputs))

    def learn(self, batch: Batch, prediction: Prediction, probs: Tensor) -> Learned:
        """Remember the batch, and adapt to the memory wherever the count of samples says so."""
        labels = prediction.logits.argmax(1)

        def remember(piece: slice) -> None:
            self.memory.add(batch.images[piece], labels[piece], self.generator)

        return self._learn_in_pieces(labels, remember)

    def _update(self) -> Tensor:
        """One step on the whole memory; returns the loss."""
        inputs = self.to_input(self.memory.contents())
        with torch.enable_grad(), tracking(self.student):
            probs = self.student(inputs)[0].to(self.wide).softmax(1)
            loss = GF.entropy(probs, eps=1e-6).mean() / self.num_classes
        return descend(self.optimizer, loss)
