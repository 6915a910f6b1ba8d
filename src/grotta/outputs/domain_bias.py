"""How biased a network is in each domain: which classes it leans to, whatever the images show."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from grotta.outputs.base import MOST_DOMAINS, Domain

WEIGHS = 512.0  # samples that the first guess of a domain's bias is worth: none at first, and later ...
LASTS = 0.5  # ... so much of the last domain's
LEAST = 1e-4  # probabilities count as at least this much
MOST = 1.5  # a class is taken to be favoured or neglected at most this many times ...
MOST_WHERE_EVEN = 3.0  # ... or, where the labels of the domains before were even, this many
UNEVEN, EVEN = 0.2, 0.5  # shares of the classes that labels are spread over, to be taken for uneven and for even
LONGEST = 4096.0  # samples that the mix of labels is of, at most


class Bias(NamedTuple):
    """What answers are divided by, and the state after it, but for the mix of labels."""

    favoured: Tensor  # (R, C), how many times too often each class is answered
    after: dict[str, Tensor]


def no_bias(readers: int, classes: int) -> dict[str, Tensor]:
    """The state before the first sample: parts of that of an output."""
    return {
        "bias": torch.zeros(MOST_DOMAINS, readers, classes, device="cpu"),  # mean log-probabilities, by domain
        "bias_images": torch.full((MOST_DOMAINS,), WEIGHS, device="cpu"),  # samples behind these
        "domain": torch.zeros((), device="cpu"),
        "mix": torch.zeros(classes, device="cpu"),  # sums of labels: of all samples ...
        "mix_before": torch.zeros(classes, device="cpu"),  # ... and of those before this domain
    }


def read_bias(state: Mapping[str, Tensor], heated: Tensor, domain: Domain | None, longest: float) -> Bias:
    """The bias in the domain of a batch of ``heated`` answers (B, R, C), which it is learned from.

    The mean of a class's log-probabilities tells, other than that of its probabilities, what the network leans to from
    what the labels happen to be: a class that fills one run in ten has a high mean probability and an ordinary mean
    logarithm, one that is half believed in every run the reverse.

    Args:
        state: with what :func:`no_bias` has.
        heated: the answers.
        domain: where they come from, if that is known. A new one is taken to be half as biased as the last one.
        longest: samples that the bias of a domain is a mean of, at most; 0: there is none.
    """
    last = state["domain"].long()
    place = last if domain is None else domain.place
    biases, images, mix = state["bias"], state["bias_images"], state["mix_before"]
    bias, weighs = biases[place], images[place]
    if domain is not None:
        afresh = domain.begins & ~domain.returns & (place != last)
        bias = torch.where(afresh, LASTS * biases[last], bias)
        weighs = torch.where(afresh, WEIGHS, weighs)
        mix = torch.where(domain.begins, state["mix"], mix)
    if longest:
        bias = torch.lerp(bias, heated.clamp_min(LEAST).log().mean(0), len(heated) / (weighs + len(heated)))
    most = _most(mix).log()
    favoured = torch.maximum(torch.minimum(bias - bias.mean(1, keepdim=True), most), -most).exp()
    here = torch.arange(MOST_DOMAINS, device=place.device) == place
    return Bias(
        favoured,
        {
            "bias": torch.where(here[:, None, None], bias, biases),
            "bias_images": torch.where(here, (weighs + len(heated)).clamp(max=max(longest, WEIGHS)), images),
            "domain": place.to(images),
            "mix_before": mix,
        },
    )


def mix_after(mix: Tensor, labels: Tensor) -> Tensor:
    """The sum of labels (C,) after those of a batch (B, C)."""
    total = mix + labels.sum(0)
    return total * (LONGEST / total.sum()).clamp(max=1)


def _most(mix: Tensor) -> Tensor:
    """How many times a class may be favoured: more where labels have been even, since it cannot be theirs; 0-dim.

    Labels are spread over as many classes as would be alike as often, if all of these were equally frequent.
    """
    total = mix.sum()
    spread = total.square() / mix.square().sum().clamp_min(1e-6)
    share = (spread - 1) / (len(mix) - 1)
    even = ((share - UNEVEN) / (EVEN - UNEVEN)).clamp(0, 1)
    return MOST * (MOST_WHERE_EVEN / MOST) ** even
