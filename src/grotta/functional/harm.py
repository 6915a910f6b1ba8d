"""Whether adaptation is harmful, judged without labels."""

import enum

from torch import Tensor

FALL, RETURN = 0.02, 0.0  # how far the adapted model must fall behind to be dropped, and be ahead to be used again
DIVERSITY = 0.5  # a model that uses less than this share of the classes that the source uses has collapsed


class Verdict(enum.Enum):
    """Which model to trust."""

    SOURCE = "source"
    ADAPTED = "adapted"


def diversity(answered: Tensor) -> Tensor:
    """The effective number of classes: the exponential of the entropy of counts (..., C).

    >>> import torch
    >>> diversity(torch.tensor([[5.0, 5.0, 0.0], [9.0, 0.0, 0.0]])).round(decimals=3)
    tensor([2., 1.])
    """
    shares = answered / answered.sum(-1, keepdim=True).clamp_min(1e-12)
    return (-(shares * shares.clamp_min(1e-12).log()).sum(-1)).exp()


def collapsed(answered: Tensor) -> Tensor:
    """Whether the adapted model's answers have lost the variety of the source's; counts (2, C), source first.

    This comes before any comparison of confidence: a collapsed model is the most confident of all. Where the source,
    too, gives only one answer, as on a constant picture, nothing is concluded.
    """
    used = diversity(answered)
    return used[1].lt(DIVERSITY * used[0])


def judge(accuracies: Tensor, has_collapsed: Tensor, *, fallen: bool) -> Verdict:
    """The model to trust, from the estimated ``accuracies`` (2,) of source and adapted model, with hysteresis.

    >>> import torch
    >>> near = torch.tensor([0.70, 0.69])
    >>> no = torch.tensor(False)
    >>> judge(near, no, fallen=False), judge(near, no, fallen=True), judge(near.flip(0), ~no, fallen=False)
    (<Verdict.ADAPTED: 'adapted'>, <Verdict.SOURCE: 'source'>, <Verdict.SOURCE: 'source'>)
    """
    if has_collapsed:
        return Verdict.SOURCE
    ahead = float(accuracies[1] - accuracies[0])
    return Verdict.ADAPTED if ahead > (RETURN if fallen else -FALL) else Verdict.SOURCE
