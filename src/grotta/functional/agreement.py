"""How good several classifiers are, from how often they agree: no labels are needed."""

import torch
from torch import Tensor


def pairwise_agreement(answers: Tensor) -> Tensor:
    """How many of the samples each pair of experts answers alike: ``answers`` (B, E) class indices to (E, E) counts.

    >>> pairwise_agreement(torch.tensor([[0, 0, 1], [2, 2, 2]]))
    tensor([[2., 2., 1.],
            [2., 2., 1.],
            [1., 1., 2.]])
    """
    return (answers[:, :, None] == answers[:, None, :]).sum(0).to(torch.get_default_dtype())


def accuracies_from_agreement(agreement: Tensor, num_classes: int) -> Tensor:
    """Accuracy, beyond chance, of three experts whose mistakes are independent; ``agreement`` (3, 3) to (3,) in [0, 1].

    If expert a knows the label with probability s_a and guesses otherwise, two of them agree, beyond chance, on
    s_a s_b of the samples. Three pairs give three unknowns: s_a = sqrt(s_ab s_ac / s_bc). Mistakes of networks with
    shared weights are alike, so all three come out too high; their *order* is what the estimate is for.

    >>> known = torch.tensor([0.9, 0.6, 0.3])
    >>> pairs = 0.1 + 0.9 * known[:, None] * known[None, :]
    >>> accuracies_from_agreement(pairs, num_classes=10)
    tensor([0.9000, 0.6000, 0.3000])
    """
    chance = 1 / num_classes
    s = ((agreement - chance) / (1 - chance)).clamp(0.02, 0.999)
    ab, ac, bc = s[0, 1], s[0, 2], s[1, 2]
    return torch.stack([ab * ac / bc, ab * bc / ac, ac * bc / ab]).sqrt().clamp(0.02, 0.98)
