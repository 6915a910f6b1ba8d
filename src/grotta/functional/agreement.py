"""How good several classifiers are, judged by how often they agree, without labels."""

import torch
from torch import Tensor


def pairwise_agreement(answers: Tensor) -> Tensor:
    """On how many samples each pair of experts agrees: ``answers`` (B, E) class indices to (E, E) counts.

    >>> pairwise_agreement(torch.tensor([[0, 0, 1], [2, 2, 2]]))
    tensor([[2., 2., 1.],
            [2., 2., 1.],
            [1., 1., 2.]])
    """
    return (answers[:, :, None] == answers[:, None, :]).sum(0).to(torch.get_default_dtype())


def accuracies_from_agreement(agreement: Tensor, num_classes: int) -> Tensor:
    """Accuracy, beyond chance, of three experts whose mistakes are independent; ``agreement`` (3, 3) to (3,) in [0, 1].

    If expert a knows the label with probability s_a and guesses otherwise, two of them agree, beyond chance, on
    s_a s_b of the samples. Three pairs give three unknowns: s_a = sqrt(s_ab s_ac / s_bc). Networks with
    shared weights make similar mistakes, so all three come out too high; their *order* is what the estimate is for.

    >>> known = torch.tensor([0.9, 0.6, 0.3])
    >>> pairs = 0.1 + 0.9 * known[:, None] * known[None, :]
    >>> accuracies_from_agreement(pairs, num_classes=10)
    tensor([0.9000, 0.6000, 0.3000])
    """
    chance = 1 / num_classes
    s = ((agreement - chance) / (1 - chance)).clamp(0.02, 0.999)
    ab, ac, bc = s[0, 1], s[0, 2], s[1, 2]
    return torch.stack([ab * ac / bc, ab * bc / ac, ac * bc / ab]).sqrt().clamp(0.02, 0.98)


def lagged_agreement(answers: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """How often an expert's answer equals another's to a sample shortly before; counts (E, E), and of pairs (0-dim).

    Mistakes about one image, which experts of shared weights have in common, do not agree across time; labels do.

    Args:
        answers: (B, E) class indices, in stream order.
        past: (L, E), those to the L samples before; -1 where there was none. L is the longest lag.

    >>> pairs = lagged_agreement(torch.tensor([[1, 1], [1, 0]]), torch.tensor([[-1, -1]]))
    >>> pairs[0], pairs[1]  # one pair of samples, at lag 1
    (tensor([[1.0000, 0.5000],
            [0.5000, 0.0000]]), tensor(1.))
    """
    lags = len(past)
    before = torch.cat([past, answers])[:-1].unfold(0, lags, 1).transpose(1, 2)  # (B, L, E)
    known = before[:, :, 0] >= 0
    equal = (answers[:, None, :, None] == before[:, :, None, :]) & known[:, :, None, None]
    counts = equal.sum((0, 1)).to(torch.get_default_dtype())
    return (counts + counts.T) / 2, known.sum().to(counts.dtype)
