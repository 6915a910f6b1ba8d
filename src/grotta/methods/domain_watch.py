"""Noticing that a stream has come to another domain, and whether it has been there before, by its images' looks."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from grotta.functional.novelty import SIGNS, Usual, nothing_usual, novelty, signs, usual_after
from grotta.nn.gated_bn import MOST_CLASSES, folded
from grotta.outputs.base import MOST_DOMAINS, Domain

FEW = 16  # images: fewer are no sample, and wait for those of the next batches


class Sight(NamedTuple):
    """What a batch looks like, with the images that waited for it."""

    signs: Tensor  # (N, SIGNS)
    size: int  # of the batch: the last rows
    domain: Domain

    @property
    def waiting(self) -> int:
        """How many images waited."""
        return len(self.signs) - self.size


class DomainWatch(nn.Module):
    """Compares images with what is usual for their classes, without asking a network.

    Colours, contrast, edges and detail tell one weather or camera from another, once it is known how they differ from
    class to class. That is learned from the labels that a method gives. The last domains are remembered.

    Args:
        num_classes: beyond a hundred, classes share offsets.
        **factory: device and dtype.
    """

    def __init__(self, num_classes: int, **factory: Any) -> None:
        super().__init__()
        classes = min(num_classes, MOST_CLASSES)
        for name, value in nothing_usual(classes, torch.zeros((), **factory))._asdict().items():
            self.register_buffer(name, value.clone())
        self.register_buffer("waiting", torch.zeros(FEW - 1, SIGNS, **factory))
        self.register_buffer("waiting_labels", torch.zeros(FEW - 1, classes, **factory))
        self.register_buffer("waiting_images", torch.zeros((), dtype=torch.int64, device="cpu"))
        # Of all domains that are remembered: what is usual there, of how many images, and when they were last seen.
        self.register_buffer("means", torch.zeros(MOST_DOMAINS, SIGNS, **factory))
        self.register_buffer("domain_images", torch.zeros(MOST_DOMAINS, **factory))
        self.register_buffer("last_seen", torch.zeros(MOST_DOMAINS, **factory))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64, device=factory.get("device")))

    @property
    def usual(self) -> Usual:
        """What is usual."""
        return Usual(*(getattr(self, name) for name in Usual._fields))

    def look(self, inputs: Tensor, labels: Tensor | None) -> Sight:
        """What ``inputs`` (B, C, H, W) look like, whose probable classes are ``labels`` (B, K) if these are known."""
        own = signs(inputs.to(self.usual.mean.dtype))
        return self._sight(own, self._labels(labels, len(own)))

    def take(self, sight: Sight, labels: Tensor) -> Sight:
        """Learn from a batch that was looked at, with the labels (B, K) that it was given; returns what was learned.

        That is the sight itself, unless others have been learned since. If other images wait now, it is looked at once
        more; and whether a domain begins is asked of the domain that the stream is in by now.
        """
        with torch.autocast(labels.device.type, enabled=False):
            known = self._labels(labels, sight.size)
            if sight.waiting != self._waits:
                sight = self._sight(sight.signs[sight.waiting :], known)
            sight = sight._replace(domain=self._by_now(sight))
            if len(sight.signs) >= FEW:
                self._learn(sight.signs, known, sight.domain)
                return sight
            self.get_buffer("waiting")[: len(known)] = sight.signs
            self.get_buffer("waiting_labels")[: len(known)] = known
            self.get_buffer("waiting_images").fill_(len(known))
            return sight

    def _sight(self, own: Tensor, labels: Tensor) -> Sight:
        """Of a batch with the signs ``own``, and those that wait; ``labels`` are of all of them."""
        usual, place = self.usual, self.get_buffer("place").clone()
        seen = torch.cat([self.get_buffer("waiting")[: self._waits], own])
        no = torch.zeros_like(place, dtype=torch.bool)
        if len(seen) < FEW:
            return Sight(seen, len(own), Domain(place, no, no))
        images, last_seen = self.get_buffer("domain_images"), self.get_buffer("last_seen")
        # From what is usual here, and from what is usual in each of the domains.
        all_means = torch.cat([usual.mean[None], self.get_buffer("means")])
        far = novelty(usual._replace(mean=all_means, images=torch.cat([usual.images[None], images])), seen, labels)
        another, surprise = far.is_another_domain(usual), far.surprise[1:]
        begins, others = another[0], another[1:]
        is_here = torch.arange(MOST_DOMAINS, device=place.device) == place
        fits = (images > 0) & ~(is_here | others)
        returns = fits.any()
        nearest = surprise.masked_fill(~fits, torch.inf).argmin()
        oldest = last_seen.masked_fill(is_here, torch.inf).argmin()
        index = torch.where(begins, torch.where(returns, nearest, oldest), place)
        return Sight(seen, len(own), Domain(index, begins, begins & returns))

    def _by_now(self, sight: Sight) -> Domain:
        """The domain of a batch, as it stands to the one that was learned last."""
        then, here = sight.domain, self.get_buffer("place")
        if len(sight.signs) < FEW:
            return Domain(here.clone(), then.begins, then.returns)
        begins = then.place != here
        return Domain(then.place, begins, begins & (then.returns | ~then.begins))

    def _learn(self, seen: Tensor, known: Tensor, domain: Domain) -> None:
        place, begins, returns = domain
        usual = self.usual
        usual = usual._replace(
            mean=torch.where(returns, self.get_buffer("means")[place], usual.mean),
            images=torch.where(begins, torch.where(returns, self.get_buffer("domain_images")[place], 0), usual.images),
        )
        after = usual_after(usual, seen, known, begins)
        for own, new in zip(self.usual, after):
            own.copy_(new)
        self.get_buffer("means")[place] = after.mean
        self.get_buffer("domain_images")[place] = after.images
        self.get_buffer("last_seen")[place] = self.get_buffer("last_seen").max() + 1
        self.get_buffer("place").copy_(place)
        self.get_buffer("waiting_images").zero_()

    @property
    def _waits(self) -> int:
        return int(self.get_buffer("waiting_images"))

    def _labels(self, labels: Tensor | None, size: int) -> Tensor:
        """Those of all images that waited, and of a batch; an even mix, where they are not known."""
        waiting = self.get_buffer("waiting_labels")
        classes = waiting.shape[1]
        own = folded(labels, classes, waiting.dtype)
        if own is None:
            own = waiting.new_full((size, classes), 1 / classes)
        return torch.cat([waiting[: self._waits], own])
