"""Training on a fair sample of the stream: what GRoTTA+ adds to statistics that follow it."""

import torch
from torch import Tensor, nn

from grotta.functional.information import evenness, information_loss
from grotta.memory import CSTU
from grotta.methods.optimise import descend, make_optimizer
from grotta.methods.origin import Origin
from grotta.methods.teacher import NothingToTrainError, trained_affine
from grotta.nn import Network

SAMPLES = 64  # images in the memory, and from one step to the next
FEWEST = 16  # images in the memory: fewer are no sample
PULL = 0.01  # of the way back to the source, after every step
REMEMBERED = 0.97  # what is kept over SAMPLES images of how often each class was the answer


class FairTraining(nn.Module):
    """Train the affine parameters of a network up the information of its answers, on a sample of all classes.

    The last batch is no fair sample where labels cluster, so recent images are kept, balanced over the answers that
    went out (:class:`CSTU`, by age alone). After every 64 images, one step on them all, as far as all classes seem to
    occur (:func:`evenness`), and a small one back to the source. Whoever calls may want a smaller step: where labels
    cluster, mistakes do too, and training makes a network sure of them.

    Args:
        network: of which the affine parameters of the norm layers are trained, and nothing else.
        num_classes: of its answers.
        lr: of Adam.
        **factory: device and dtype of the counts.
    """

    answered: Tensor
    squares: Tensor
    images: Tensor

    def __init__(self, network: Network, num_classes: int, lr: float, **factory: object) -> None:
        super().__init__()
        trained = list(trained_affine(network).values())
        object.__setattr__(self, "network", network)  # the adapter's, not a sub-module of this
        self.optimizer = make_optimizer("adam", trained, lr)
        self.origin = Origin(trained)
        self.memory = CSTU(SAMPLES, num_classes, lambda_u=0.0)
        self.register_buffer("answered", torch.zeros(num_classes, **factory))  # type: ignore[call-overload]
        self.register_buffer("squares", torch.zeros((), **factory))  # type: ignore[call-overload]
        self.register_buffer("images", torch.zeros((), dtype=torch.int64, device="cpu"))  # since the last step

    @property
    def is_due(self) -> bool:
        """Whether enough images have come for the next step."""
        return int(self.images) >= SAMPLES

    def remember(self, images: Tensor, probs: Tensor) -> None:
        """Take a batch (B, C, H, W), of which ``probs`` (B, classes) went out, into the memory."""
        answers = probs.argmax(1)
        self.memory.add(images, answers, probs.new_zeros(len(probs)))
        keep = REMEMBERED ** (len(images) / SAMPLES)
        self.answered.mul_(keep).add_(torch.bincount(answers, minlength=len(self.answered)))
        self.squares.mul_(keep**2).add_(len(images))
        self.images += len(images)

    def step(self, inputs: Tensor, share: float = 1.0) -> Tensor | None:
        """A ``share`` of a step on ``inputs``, the images of the memory; returns the loss, if there was one."""
        self.images.zero_()
        fair = share * float(evenness(self.answered, self.squares))
        loss = None
        if fair > 0 and len(inputs) >= FEWEST:
            before = [p.detach().clone() for p in self.origin.trained]
            with torch.enable_grad():
                logits, _ = self.network(inputs)  # type: ignore[operator]
                loss = descend(self.optimizer, information_loss(logits.to(self.answered.dtype)))
            torch._foreach_lerp_(self.origin.trained, before, 1 - fair)
        self.origin.pull_(PULL)
        return loss


def fair_training(network: Network, num_classes: int, lr: float, **factory: object) -> FairTraining | None:
    """The training of ``network``, or None if it has nothing to train."""
    try:
        return FairTraining(network, num_classes, lr, **factory)
    except NothingToTrainError:
        return None
