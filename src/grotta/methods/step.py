"""The values that pass through a step: what came in, what was predicted, what was learned."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from grotta.outputs import Output
from grotta.outputs.base import NO_NUMBERS, Domain


class Batch(NamedTuple):
    """One batch in its two forms."""

    images: Tensor  # (B, C, H, W) as they came, uint8 or float: what a memory stores
    inputs: Tensor  # (B, C, H, W) float in [0, 1]: what a network takes


class Prediction(NamedTuple):
    """What a method makes of a batch before it adapts to it."""

    logits: Tensor  # (B, classes)
    features: Tensor  # (B, d)
    raw: Tensor | None = None  # (B, classes), the network's own, of a method whose ``logits`` are corrected
    extra: object = None  # anything else from the pass that ``learn`` needs
    domain: Domain | None = None  # where the batch comes from, if the method tells domains apart


class Learned(NamedTuple):
    """What a method did with a batch; ``None`` where that does not apply."""

    adapted: bool = False
    loss: Tensor | None = None
    bank_size: Tensor | int | None = None
    numbers: Mapping[str, Tensor | float] = NO_NUMBERS  # others by name: they become fields of the step's StepInfo
    domain: Domain | None = None  # where the batch comes from; told to outputs that ask for it


class Pending:
    """A batch that was answered and is still to be learned from, with everything that the learning needs.

    Made by :meth:`Adapter.answer` and used up by :meth:`Adapter.learn_from`; to skip the learning, drop it.
    """

    __slots__ = ("answered", "batch", "draws", "learned", "output", "owner", "prediction", "probs", "source", "version")

    def __init__(
        self,
        owner: object,
        version: int,
        batch: Batch,
        prediction: Prediction,
        probs: Tensor,
        output: Output,
        draws: tuple[Tensor, Tensor] | None,
        source: Tensor | None = None,
        answered: Tensor | None = None,
    ) -> None:
        self.owner = owner
        self.version = version  # of the adapter's state that answered
        self.batch = batch
        self.prediction = prediction
        self.probs = probs  # before output adaptation
        self.output = output
        self.draws = draws  # states of the generator before and after the answer, if it drew anything
        self.source = source  # (B, classes), the source model's probabilities, if a guard watches
        self.answered = probs if answered is None else answered  # what the output was made of
        self.learned = False

    def __len__(self) -> int:
        return len(self.batch.images)

    def __repr__(self) -> str:
        return f"Pending({len(self)} images{', learned' if self.learned else ''})"

    def claim(self, owner: object) -> None:
        """Refuse a batch that another adapter answered, or that was learned from already."""
        if self.owner is not owner:
            raise ValueError("pending must come from this adapter's answer(), got that of another adapter")
        if self.learned:
            raise ValueError("pending has been learned from already")
        self.learned = True
