"""The base of output adaptations: a refinement, and a state that observed batches may change."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from grotta import functional as GF
from grotta._check import check_whole

MOST_DOMAINS = 16  # that are remembered
NO_NUMBERS: Mapping[str, Tensor | float] = MappingProxyType({})


class Domain(NamedTuple):
    """Where a batch comes from, as far as a method can tell."""

    place: Tensor  # 0-dim, int64: which of MOST_DOMAINS places it has; long forgotten ones make room for new ones
    begins: Tensor  # 0-dim, of truth values: whether the batch before was of another one
    returns: Tensor  # ... and whether this one has been seen before


class Output(NamedTuple):
    """Probabilities (B, classes) as they go out, and the numbers behind them."""

    probs: Tensor
    zeta: Tensor  # imbalance score of the predictions, in [0, 1)
    lam: Tensor | None = None  # weight of the feature graph, if there is one
    numbers: Mapping[str, Tensor | float] = NO_NUMBERS  # others by name: they become fields of the step's StepInfo


class OutputAdaptation(ABC):
    """Refines the predictions of a batch, whose rows are in stream order, and may remember the stream.

    There are two verbs. ``refine`` computes the output from the batch and the state and changes nothing;
    ``observe`` updates the state with a batch that was refined. Calling the adaptation does both. An adapter
    that only predicts calls ``refine`` alone.

    A subclass without state overrides ``refine`` only. One with state also overrides ``observe``, ``reset``,
    ``state_dict`` and ``load_state_dict``; its ``__init__`` stores its options and ends with ``self.reset()``.
    The state is tensors; it is saved, restored and reset with the adapter.

    Options must be checked in ``__init__``, so that a mistake is found before the first batch.
    """

    name: ClassVar[str] = ""
    # Whether ``refine`` and ``observe`` also take ``domain``, a :class:`Domain`. Where batches are observed late, after
    # others, that of ``observe`` is what is known by then.
    knows_domains: ClassVar[bool] = False

    def __init__(self, num_classes: int) -> None:
        self.num_classes = check_whole("num_classes", num_classes, at_least=2)

    @abstractmethod
    def refine(self, probs: Tensor, features: Tensor) -> Output:
        """The output for predictions (B, classes) and features (B, d), given the state, which does not change."""

    def observe(self, probs: Tensor, features: Tensor, output: Output) -> None:  # noqa: B027 - most have no state
        """Update the state with a batch and the output that ``refine`` gave for it."""

    def reset(self) -> None:  # noqa: B027 - most have no state
        """Forget the stream: as newly created."""

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of everything that the next call depends on."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``; one that does not fit raises a ``ValueError`` and changes nothing."""
        if state:
            raise ValueError(f"output adaptation {self.name!r} has no state, got {sorted(state)}")

    def __call__(self, probs: Tensor, features: Tensor | None = None) -> Output:
        """Refine the batch, then observe it; without features, the probabilities stand in for them."""
        features = probs if features is None else features
        output = self.refine(probs, features)
        self.observe(probs, features, output)
        return output

    def _try_options(self) -> None:
        """Refine two samples, so that options out of range are refused now."""
        probs = torch.full((2, self.num_classes), 1 / self.num_classes, device="cpu")
        self.refine(probs, torch.eye(2, device="cpu"))


def unrefined(probs: Tensor) -> Output:
    """The predictions as they are, with their imbalance score."""
    return Output(probs, GF.imbalance_score(probs))
