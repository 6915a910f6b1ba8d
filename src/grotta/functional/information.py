"""Mutual information of image and answer as an objective, and whether a stream is one that it may be used on."""

import torch
from torch import Tensor

from grotta.functional.losses import softmax_entropy

EVEN, UNEVEN = 1.5, 2.0  # times as often as by chance two answers agree: up to here all is well, from here nothing


def information_loss(logits: Tensor) -> Tensor:
    """Minus the mutual information of image and answer: mean entropy less the entropy of the mean; (B, C) to 0-dim.

    Going down it, answers become sure without becoming all the same, where going down the entropy alone may end. It
    takes the batch to be an even sample of the classes.

    >>> information_loss(torch.tensor([[9.0, -9.0], [-9.0, 9.0]])), information_loss(torch.zeros(2, 2)).abs()
    (tensor(-0.6931), tensor(0.))
    """
    mean = logits.softmax(-1).mean(0)
    return softmax_entropy(logits).mean() + (mean * mean.clamp_min(1e-9).log()).sum()


def evenness(alike: Tensor, num_classes: int) -> Tensor:
    """How far all classes can be taken to occur, from the share of pairs of answers that are alike; to [0, 1].

    Two answers out of C classes agree by chance with probability 1/C. Up to 1.5 times that often is 1, from twice on
    0: most of the classes are then missing, or the answers are not to be believed. Pairs should be far apart in time,
    or labels that come in runs look as if there were few of them.

    >>> evenness(torch.tensor([0.25, 0.5]), 4)
    tensor([1., 0.])
    """
    return torch.clamp((UNEVEN - num_classes * alike) / (UNEVEN - EVEN), 0, 1)
