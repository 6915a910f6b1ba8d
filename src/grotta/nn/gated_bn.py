"""Batch normalisation whose statistics follow the stream at the speed that the stream asks for."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.robust_bn import preserve_gradient
from grotta.nn.statistics import channel_statistics

SAMPLES = 64  # speeds are per this many images, whatever the size of a batch
JUMP = 8.0  # a batch this many times as surprising as expected is a new domain
DRIFT = 0.001  # how much the statistics are expected to drift, in units of the noise
LEARNS_NOISE = 0.1  # speed at which the noise level follows
CLIP = 3.0  # of surprises, where the noise level is learned: a new domain is not noise
FIRST_NOISE = 2.0  # the noise at first, in units of that of a fair batch
MOST = 0.9  # of the way to the statistics of a batch, at once
MOST_CLASSES = 100  # beyond this many, classes share offsets, which bounds their size
OFFSETS_FADE = 0.98  # what is kept of an offset's weight over SAMPLES images
FEW = 16  # images: fewer are no sample, and wait for those of the next batches
LEAST_VAR = 0.1  # of a batch's variance, whatever its classes are taken to explain


class Observation(NamedTuple):
    """What ``size`` images show to one layer."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    between: Tensor  # (C,), of the means of the images, biased
    size: int
    mix: Tensor | None = None  # (K,), of their classes, where these are known


class Shown(NamedTuple):
    """What one batch shows to one layer, image by image."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    between: Tensor  # (C,), of the means of the images, biased
    images: Tensor  # (B, C), the mean of each image

    def observation(self, labels: Tensor | None = None) -> Observation:
        """All of it together, with the mix of the images' ``labels`` (B, K)."""
        mix = None if labels is None else labels.mean(0)
        return Observation(self.mean, self.var, self.between, len(self.images), mix)


def pooled(first: Observation, second: Observation) -> Observation:
    """What the images of two observations show together."""
    size = first.size + second.size
    share = second.size / size
    mean = torch.lerp(first.mean, second.mean, share)
    apart = share * (1 - share) * (second.mean - first.mean).square()
    known = first.mix is not None and second.mix is not None
    return Observation(
        mean,
        torch.lerp(first.var, second.var, share) + apart,
        torch.lerp(first.between, second.between, share) + apart,
        size,
        torch.lerp(first.mix, second.mix, share) if known else None,  # type: ignore[arg-type]
    )


class Gate(NamedTuple):
    """Statistics, and how sure they are: a Kalman filter with one uncertainty for all channels of a layer."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,)
    uncertainty: Tensor  # expected squared error of the mean, in units of the variance; 0-dim
    noise: Tensor  # the same of a single image's observation; 0 until the first batch; 0-dim


def follow(gate: Gate, seen: Observation, eps: float) -> Gate:
    """The gate after an observation.

    The surprise of a batch, d = mean of (mean_b - mean)^2 / var and of half the squared log-ratio of the variances, is
    noise (sampling; few classes in the batch) or news (a new domain). As much as d goes beyond ``JUMP`` times what was
    expected is news: it becomes uncertainty, and the gain u / (u + noise) lets the statistics jump. Otherwise they
    settle, ever more slowly. What a stream's usual batches look like, such as one class at a time, is its
    noise level, learned from clipped surprises: where batches are poor samples the statistics are patient.

    The variance of a small batch lacks how far its images lie from those of other batches (all of it, in a batch of
    one): the squared distance of its mean is added, as far as that is noise and not news.
    """
    scale = gate.var + eps
    spread = (seen.between / scale).mean() * (seen.size / max(seen.size - 1, 1))  # of images, not of their sample
    surprise = ((seen.mean - gate.mean).square() / scale).mean()
    surprise = surprise + 0.5 * ((seen.var + eps) / scale).log().square().mean()
    first = gate.noise == 0
    start = FIRST_NOISE * (spread if seen.size > 1 else surprise)
    per_image = torch.where(first, start.clamp_min(1e-6 * seen.size), gate.noise)
    noise = per_image / seen.size
    news = torch.maximum(surprise - noise, gate.uncertainty)
    uncertainty = torch.where(surprise > JUMP * (gate.uncertainty + noise), news, gate.uncertainty)
    uncertainty = torch.where(first, surprise, uncertainty)
    gain = (uncertainty / (uncertainty + noise)).clamp(0, MOST)
    apart = (1 - gain) * torch.minimum((seen.mean - gate.mean).square(), CLIP * noise * scale)
    share = seen.size / SAMPLES
    learned = torch.lerp(per_image, torch.minimum(surprise, CLIP * noise) * seen.size, 1 - (1 - LEARNS_NOISE) ** share)
    return Gate(
        torch.lerp(gate.mean, seen.mean, gain),
        torch.lerp(gate.var, seen.var + apart, gain),
        (1 - gain) * uncertainty + DRIFT * share * per_image / SAMPLES,
        torch.maximum(torch.where(first, per_image, learned), 0.5 * spread),
    )


class Offsets(NamedTuple):
    """How far the mean of each class lies from that of all, and how many images say so."""

    mean: Tensor  # (K, C)
    images: Tensor  # (K,)


def rebalanced(seen: Observation, offsets: Offsets) -> Observation:
    """What the images would have shown if every class had its equal share; as they are if the mix is not known.

    A batch of few classes differs from the stream's statistics because of its classes, not because the world has
    changed. With the classes' offsets known, its mean is put right by the offset of its own mix, and its variance by
    the spread between classes that it lacks.

    Args:
        seen: the observation.
        offsets: of all classes; those of which nothing has been seen are taken to be zero.
    """
    if seen.mix is None:
        return seen
    offset = offsets.mean * (offsets.images / (offsets.images + 1))[:, None]
    own, usual = seen.mix @ offset, offset.mean(0)
    lacking = (offset.square().mean(0) - usual.square()) - (seen.mix @ offset.square() - own.square())
    return seen._replace(mean=seen.mean - (own - usual), var=torch.maximum(seen.var + lacking, LEAST_VAR * seen.var))


class GatedBN1d(AdaptiveNorm):
    """Gated batch normalisation of (B, C) or (B, C, L).

    Inside ``observing()`` a batch is normalised by the statistics as it would move them, and what it shows is handed
    to whoever observes; elsewhere by the statistics as they are. They only move when :meth:`move` is called, and only
    when there are enough images: what a small batch shows waits for the next ones.

    With ``num_classes``, and labels for a batch, what is seen is :func:`rebalanced` first; the classes' offsets are
    learned from the same labels.

    Where it is trained, gradients have the form of training-mode batch normalisation, whatever the statistics.
    """

    ranks: tuple[int, ...] = (2, 3)
    compiles = False  # it hands what it sees to whoever observes
    uncertainty: Tensor
    noise: Tensor
    offsets: Tensor
    offset_images: Tensor
    waiting: Tensor
    waiting_mix: Tensor
    waiting_images: Tensor

    def __init__(
        self, num_features: int, *, eps: float = 1e-5, affine: bool = True, num_classes: int = 0, **factory: Any
    ) -> None:
        super().__init__(num_features, eps=eps, affine=affine, **factory)
        classes = min(num_classes, MOST_CLASSES)
        self.register_buffer("uncertainty", torch.zeros((), **factory))
        self.register_buffer("noise", torch.zeros((), **factory))
        self.register_buffer("offsets", torch.zeros(classes, num_features, **factory))
        self.register_buffer("offset_images", torch.zeros(classes, **factory))
        self.register_buffer("waiting", torch.zeros(3, num_features, **factory))  # mean, var, between
        self.register_buffer("waiting_mix", torch.zeros(classes, **factory))
        self.register_buffer("waiting_images", torch.zeros((), dtype=torch.int64, device="cpu"))

    @property
    def gate(self) -> Gate:
        """The statistics as they are."""
        return Gate(self.running_mean, self.running_var, self.uncertainty, self.noise)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x`` (B, C, ...); the result has its shape and dtype."""
        self.check_input(x)
        gate = self.gate
        observer: _Observer | None = getattr(_open, "observer", None)
        if observer is not None:
            shown = self._observe(x)
            observer.seen.append((self, shown))
            gate = self._after(self._with_those_waiting(shown.observation(self._folded(observer.labels))))
        elif torch.is_grad_enabled() and (x.requires_grad or (self.weight is not None and self.weight.requires_grad)):
            return preserve_gradient(x, self.weight, self.bias, channel_statistics(x), gate[:2], self.eps)
        return F.batch_norm(x, gate.mean, gate.var, self.weight, self.bias, False, 0.0, self.eps)

    def move(self, shown: Shown, labels: Tensor | None = None) -> None:
        """Move the statistics, and the offsets if there are ``labels`` (B, K), by what a batch has shown."""
        with torch.no_grad(), torch.autocast(shown.mean.device.type, enabled=False):
            labels = self._folded(labels)
            seen = self._with_those_waiting(shown.observation(labels))
            if seen.size < FEW:
                self._let_wait(seen)
            else:
                for own, new in zip(self.gate, self._after(seen)):
                    own.copy_(new)
                self.waiting_images.zero_()
            if labels is not None and len(shown.images) % len(labels) == 0:
                self._learn_offsets(shown, labels)

    def _after(self, seen: Observation) -> Gate:
        with torch.autocast(seen.mean.device.type, enabled=False):  # statistics are not for half precision
            return follow(self.gate, rebalanced(seen, Offsets(self.offsets, self.offset_images)), self.eps)

    def _with_those_waiting(self, seen: Observation) -> Observation:
        size = int(self.waiting_images)
        if not size:
            return seen
        mean, var, between = self.waiting
        return pooled(Observation(mean, var, between, size, self.waiting_mix), seen)

    def _let_wait(self, seen: Observation) -> None:
        self.waiting.copy_(torch.stack((seen.mean, seen.var, seen.between)))
        even = torch.full_like(self.waiting_mix, 1 / max(len(self.waiting_mix), 1))  # which corrects nothing
        self.waiting_mix.copy_(even if seen.mix is None else seen.mix)
        self.waiting_images.fill_(seen.size)

    def _learn_offsets(self, shown: Shown, labels: Tensor) -> None:
        rows = (len(labels), -1, len(self.running_mean))  # some models flatten (B, tokens, C)
        images = shown.images.reshape(rows).mean(1)
        before = self.offset_images * OFFSETS_FADE ** (len(shown.images) / SAMPLES)
        after = before + labels.sum(0)
        sums = self.offsets * before[:, None] + labels.T @ (images - self.running_mean)
        self.offsets.copy_(sums / after.clamp_min(torch.finfo(after.dtype).tiny)[:, None])
        self.offset_images.copy_(after)

    def _folded(self, labels: Tensor | None) -> Tensor | None:
        """Labels in the layer's precision, classes that share an offset added up; None if there are no offsets."""
        kept = len(self.offsets)
        if labels is None or not kept:
            return None
        labels = labels.to(self.offsets.dtype)
        if labels.shape[1] == kept:
            return labels
        place = torch.arange(labels.shape[1], device=labels.device) % kept
        return labels.new_zeros(len(labels), kept).index_add_(1, place, labels)

    def _observe(self, x: Tensor) -> Shown:
        x = x.detach()
        mean, var = (v.to(self.running_mean.dtype) for v in channel_statistics(x))
        images = (x.flatten(2).mean(2) if x.ndim > 2 else x).to(mean.dtype)
        return Shown(mean, var, (images - mean).square().mean(0), images)


class GatedBN2d(GatedBN1d):
    """Gated batch normalisation of (B, C, H, W).

    >>> layer = GatedBN2d.from_bn(torch.nn.BatchNorm2d(2))
    >>> with observing() as seen:
    ...     _ = layer(torch.randn(16, 2, 4, 4) + 3)
    >>> seen[0][0].move(seen[0][1])
    >>> bool((layer.running_mean > 1).all())
    True
    """

    ranks = (4,)


class _Observer(NamedTuple):
    seen: list[tuple[GatedBN1d, Shown]]
    labels: Tensor | None


_open = threading.local()


@contextlib.contextmanager
def observing(labels: Tensor | None = None) -> Iterator[list[tuple[GatedBN1d, Shown]]]:
    """Collect, in this thread, what the gated layers of the networks that run in here see.

    ``labels`` (B, K) are the probable classes of the batch that they are shown, if these are known.
    """
    before = getattr(_open, "observer", None)
    _open.observer = _Observer([], labels)
    try:
        yield _open.observer.seen
    finally:
        _open.observer = before
