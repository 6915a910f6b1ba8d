"""How far to rely on each of several classifiers, from what can be seen of them without labels."""

import math

import torch
from torch import Tensor

FAINT, CLEAR = 0.02, 0.1  # agreement across time, beyond chance, that says nothing, and that says all
# How much information, confidence and constancy count, in log-weight: chosen on the streams of
# ``benchmarks/development.py``, odd-numbered CIFAR-10 and fashion images under shot noise, contrast and frost.
COUNTS = (3.0, 1.0, 3.0)


def information(entropy: Tensor, mean: Tensor) -> Tensor:
    """Mutual information of image and answer, as a share of the largest possible; (E,) and (E, C) to (E,).

    It is the entropy of the mean answer less the mean entropy of the answers. An expert that says the same about
    every image tells nothing, however sure it is; one that is never sure tells nothing either.

    >>> information(torch.tensor([0.0, 0.5]), torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    tensor([1.0000, 0.2787])
    """
    total = -(mean * mean.clamp_min(1e-9).log()).sum(1)
    return (total - entropy) / math.log(mean.shape[1])


def constancy(lagged: Tensor, answered: Tensor) -> tuple[Tensor, Tensor]:
    """How well each expert knows the label, by its agreement with all of them *across time*, and how clear that is.

    If labels close in time are equal, beyond chance, with probability r, then experts a and b agree across time on
    r s_a s_b of the pairs: the largest eigenvector of these agreements is s, up to its length. Mistakes about single
    images, which experts of shared weights have in common, do not matter.

    Args:
        lagged: (E, E), the share of pairs of samples close in time that two experts answer alike.
        answered: (E, C), the share of each class among an expert's answers.

    Returns:
        (E,) with 1 for the best; and how clearly labels cluster in time, 0-dim in [0, 1].

    >>> s = torch.tensor([0.9, 0.6, 0.3])
    >>> constancy(0.1 + 0.9 * 0.5 * s[:, None] * s[None, :], torch.full((3, 10), 0.1))
    (tensor([1.0000, 0.6667, 0.3333]), tensor(1.))
    """
    chance = answered @ answered.T
    beyond = (lagged - chance).clamp(1e-3, 1)
    for _ in range(3):  # its eighth power, whose rows add up to the eigenvector
        beyond = beyond @ beyond
        beyond = beyond / beyond.max()
    best = beyond.sum(1)
    best = best / best.max()
    usual = ((lagged - chance) / (1 - chance).clamp_min(1e-6)).clamp(1e-3, 1).median()
    return best, ((usual - FAINT) / (CLEAR - FAINT)).clamp(0, 1)


def signs(
    told: Tensor, confidence: Tensor, chance: Tensor, constant: Tensor, clear: Tensor, num_classes: int
) -> Tensor:
    """What speaks for each of E experts, as logarithms: information, confidence and constancy; (E, 3).

    Args:
        told: (E,), as :func:`information` gives it.
        confidence: (E,), mean confidence.
        chance: (E,), how often two answers of an expert are equal by chance, given its usual mix of classes: an expert
            that nearly always says the same is sure of little beyond that.
        constant: (E,), as :func:`constancy` gives it ...
        clear: ... and how clear that is, 0-dim.
        num_classes: of the experts' answers.
    """
    sure = ((confidence - chance) / (1 - chance).clamp_min(1e-6)).clamp(0.02, 0.999).logit()
    tells = (told + 0.05 / math.log(num_classes)).clamp_min(0.005).log()
    return torch.stack([tells, sure, clear * constant.log()], 1)


def reliance(signs: Tensor) -> Tensor:
    """Weights (E,) that sum to 1, from :func:`signs` (E, 3).

    >>> same = torch.full((2,), 0.8)
    >>> chance = torch.full((2,), 0.1)
    >>> reliance(signs(torch.tensor([0.1, 0.7]), same, chance, torch.ones(2), torch.tensor(0.0), 10))
    tensor([0.0048, 0.9952])
    """
    return (signs @ signs.new_tensor(COUNTS)).softmax(0)
