"""Training on a fair sample of the stream: what GRoTTA+ adds to statistics that follow it."""

import warnings

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
CALM = 256  # images in a row without a sign that labels cluster, before a step; after each clear sign twice as many ...
DOUBLED = 4  # ... but so many times at most
CLEAR = 0.25  # how clearly labels cluster, if that is no chance and no new domain
OVERRULED = 0.1  # of the answers: where their neighbours in time overrule more, labels cluster clearly
FADES = 0.75  # what is kept, from step to step, of the answers that this is a share of ...
LEFT_ALONE = 192.0  # ... and so many are taken to have been left alone before the first
BLOCK = 128  # images: answers with a block between them are far apart in time
REMEMBERED = 0.95  # what is kept, from block to block, of the answers
PULL = 0.01  # of the way back to the source, after every step ...
PULL_AFRESH = 0.5  # ... and where a new domain begins


class FairTraining(nn.Module):
    """Train the affine parameters of a network up the information of its answers, on a sample of all classes.

    The last batch may be no fair sample, so recent images are kept, balanced over the answers that went out
    (:class:`CSTU`, by age alone). After every 64 images, one step on them all, as far as all classes seem to occur
    (:func:`evenness`), and a small one back to the source.

    Where labels cluster in time mistakes do too, and training makes a network sure of them. So nothing is trained
    before hundreds of images in a row have shown no sign of that, and at a clear sign all that was trained is dropped.
    Where a new domain begins, half of it is.

    Args:
        network: of which the affine parameters of the norm layers are trained, and nothing else.
        num_classes: of its answers.
        lr: of Adam; half of it where there are more classes than images in the memory, so that it shows most of them
            not even once.
        **factory: device and dtype of the counts.
    """

    answered: Tensor
    last: Tensor
    block: Tensor
    alike: Tensor
    overruled: Tensor
    images: Tensor
    calm: Tensor
    in_block: Tensor
    steps: Tensor
    signs: Tensor
    failed: Tensor

    def __init__(self, network: Network, num_classes: int, lr: float, **factory: object) -> None:
        super().__init__()
        trained = list(trained_affine(network).values())
        object.__setattr__(self, "network", network)  # the adapter's, not a sub-module of this
        self.optimizer = make_optimizer("adam", trained, lr if num_classes <= SAMPLES else lr / 2)
        self.origin = Origin(trained)
        self.memory = CSTU(SAMPLES, num_classes, lambda_u=0.0)
        # How often each class was the answer: before the last block, in it, and in this one; of pairs of these, how
        # many are alike, and how many there are; and how many answers were overruled lately, of how many.
        sizes = {"answered": num_classes, "last": num_classes, "block": num_classes, "alike": 2, "overruled": 2}
        for name, size in sizes.items():
            self.register_buffer(name, torch.zeros(size, **factory))  # type: ignore[call-overload]
        self.overruled[1] = LEFT_ALONE
        # Images since the last step, since the last sign of clusters and of the block; steps since the source; clear
        # signs of clusters; whether a step has failed.
        for name in ("images", "calm", "in_block", "steps", "signs", "failed"):
            self.register_buffer(name, torch.zeros((), dtype=torch.int64, device="cpu"))

    @property
    def is_due(self) -> bool:
        """Whether enough images have come for the next step."""
        return int(self.images) >= SAMPLES

    @property
    def is_untouched(self) -> bool:
        """Whether the network is the source."""
        return not int(self.steps)

    def remember(self, images: Tensor, probs: Tensor, said: Tensor | None = None) -> None:
        """Take a batch (B, C, H, W), of which ``probs`` (B, classes) went out, into the memory.

        ``said`` (B, classes): what was made of it before its place in the stream was considered.
        """
        answers = probs.argmax(1)
        if said is not None:
            self.overruled[0] += (said.argmax(1) != answers).sum()
        self.overruled[1] += len(answers)
        self.memory.add(images, answers, probs.new_zeros(len(probs)))
        self.block.add_(torch.bincount(answers, minlength=len(self.block)))
        self.images += len(images)
        self.in_block += len(images)
        if int(self.in_block) >= BLOCK:
            self._end_block()

    def _end_block(self) -> None:
        """Count the pairs of an answer of this block and one from before the last that are alike."""
        pairs = torch.stack((torch.dot(self.block, self.answered), self.block.sum() * self.answered.sum()))
        self.alike.mul_(REMEMBERED).add_(pairs)
        self.answered.mul_(REMEMBERED).add_(self.last)
        self.last.copy_(self.block)
        self.block.zero_()
        self.in_block.zero_()

    def step(self, inputs: Tensor, clustered: float = 0.0) -> Tensor | None:
        """A step on ``inputs``, the images of the memory, unless labels seem to have ``clustered``; returns the loss.

        Args:
            inputs: (M, C, H, W), as the network takes them.
            clustered: how clearly, in [0, 1].
        """
        clear = clustered > CLEAR or float(self.overruled[0] / self.overruled[1].clamp_min(1)) > OVERRULED
        calm = min(int(self.calm), 0) if clustered > 0 else int(self.calm + self.images)
        self.calm.fill_(calm)
        self.images.zero_()
        self.overruled.mul_(FADES)
        if clear:
            self.signs += 1
            self.calm.fill_(CALM - CALM * 2 ** min(int(self.signs), DOUBLED))
            self._drop()
        if int(self.calm) < CALM or len(inputs) < FEWEST or int(self.failed):
            return None
        loss = None
        fair = float(evenness(self.alike[0] / self.alike[1], len(self.block))) if self.alike[1] > 0 else 0.0
        if fair > 0:
            before = [p.detach().clone() for p in self.origin.trained]
            try:
                with torch.enable_grad():
                    logits, _ = self.network(inputs)  # type: ignore[operator]
                    loss = descend(self.optimizer, information_loss(logits.to(self.block.dtype)))
            except RuntimeError as error:
                self._give_up(error)
                return None
            torch._foreach_lerp_(self.origin.trained, before, 1 - fair)
            self.steps += 1
        self.origin.pull_(PULL)
        return loss

    def begin_domain(self) -> None:
        """Go half of the way back to the source: what was trained for the domain before may not fit the new one."""
        if not self.is_untouched:
            self.origin.pull_(PULL_AFRESH)

    def _drop(self) -> None:
        """Put the source back."""
        self.origin.restore_(self.optimizer)
        self.steps.zero_()

    def _give_up(self, error: RuntimeError) -> None:
        """Train no more: hundreds of images into a stream, no answer may be lost to a step that cannot be taken."""
        self.failed.fill_(1)
        self.optimizer.zero_grad()
        self._drop()
        warnings.warn(
            f"the model cannot be trained, so it is only read from here on (train=False does not try): {error}",
            stacklevel=2,
        )


def fair_training(network: Network, num_classes: int, lr: float, **factory: object) -> FairTraining | None:
    """The training of ``network``, or None if it has nothing to train."""
    try:
        return FairTraining(network, num_classes, lr, **factory)
    except NothingToTrainError:
        return None
