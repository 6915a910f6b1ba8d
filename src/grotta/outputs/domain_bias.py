"""How biased a network is in each domain: which classes it leans to, whatever the images show."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from grotta.outputs.base import MOST_DOMAINS, Domain

WEIGHS = 512.0  # samples that the first guess of a domain's bias is worth: none at first, and later ...
LASTS = 0.5  # ... so much of the last domain's
MOST_AGAINST = 27.0  # nats that an answer can speak against a class
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
        "mix": torch.full((classes,), 1 / classes, device="cpu"),  # the mean of labels ...
        "mix_images": torch.zeros((), device="cpu"),  # ... over so many samples
        "most": torch.tensor(math.log(MOST), device="cpu"),  # how far the logarithm of a bias may go in this domain
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
    place = (last if domain is None else domain.place).view(1)
    biases, images, most = state["bias"], state["bias_images"], state["most"]
    bias, weighs = biases.index_select(0, place)[0], images.index_select(0, place)
    if domain is not None and not surely_false(domain.begins):
        afresh = domain.begins & ~domain.returns
        before = _bounded(biases.index_select(0, last.view(1))[0], most)
        bias = torch.where(afresh, LASTS * before, bias)
        weighs = torch.where(afresh, WEIGHS, weighs)
        most = torch.where(domain.begins, _most(state["mix"]), most)
    by_then = weighs + len(heated)
    if longest:
        least = math.exp(-min(heated.shape[2], MOST_AGAINST))
        bias = torch.lerp(bias, heated.clamp_min(least).log().mean(0), len(heated) / by_then)
    return Bias(
        _bounded(bias, most).exp(),
        {
            "bias": biases.index_copy(0, place, bias[None]),
            "bias_images": images.index_copy(0, place, by_then.clamp(max=longest or WEIGHS)),
            "domain": place[0].to(images),
            "most": most,
        },
    )


def mix_after(state: Mapping[str, Tensor], labels: Tensor) -> dict[str, Tensor]:
    """The mean of labels, and the samples behind it, after those of a batch (B, C)."""
    by_then = state["mix_images"] + len(labels)
    mix = torch.lerp(state["mix"], labels.mean(0), len(labels) / by_then)
    return {"mix": mix, "mix_images": by_then.clamp_max(LONGEST)}


def surely_false(flag: Tensor) -> bool:
    """Whether a flag is known to be false without waiting for a device: there, what depends on it is computed."""
    return flag.device.type == "cpu" and not flag


def _bounded(bias: Tensor, most: Tensor) -> Tensor:
    """Biases (R, C), around zero, as far as they are believed."""
    return torch.clamp(bias - bias.mean(1, keepdim=True), -most, most)


def _most(mix: Tensor) -> Tensor:
    """How far the logarithm of a bias may go: further where labels have been even, since it cannot be theirs; 0-dim.

    Labels are spread over as many classes as would be alike as often, if all of these were equally frequent.
    """
    share = (mix.dot(mix).reciprocal() - 1) / (len(mix) - 1)
    low, high = math.log(MOST), math.log(MOST_WHERE_EVEN)
    return (low + (share - UNEVEN) * ((high - low) / (EVEN - UNEVEN))).clamp(low, high)
