"""Learning only from those samples of a batch that the network is sure of."""

import math

from torch import Tensor


def entropy_limit(fraction: float, num_classes: int) -> float:
    """``fraction`` of the largest entropy that ``num_classes`` classes allow, in nats.

    >>> round(entropy_limit(0.4, 10), 3)
    0.921
    """
    return fraction * math.log(num_classes)


def mean_over(values: Tensor, kept: Tensor) -> Tensor:
    """Mean of ``values`` (B,) over the samples that ``kept`` (B,) marks, of which there must be at least one.

    The others take part with weight 0: their gradient is exactly 0, and shapes do not depend on the data.

    >>> import torch
    >>> mean_over(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([True, False, True]))
    tensor(3.5000)
    """
    return values.where(kept, 0).sum() / kept.sum()
