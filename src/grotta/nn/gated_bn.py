"""Batch normalisation whose statistics follow the stream at the speed that the stream asks for."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.statistics import channel_statistics

SAMPLES = 64  # speeds are per this many images, whatever the size of a batch
JUMP = 8.0  # a batch this many times as surprising as expected is a new domain
DRIFT = 0.001  # how much the statistics are expected to drift, in units of the noise
LEARNS_NOISE = 0.1  # speed at which the noise level follows
CLIP = 3.0  # of surprises, where the noise level is learned: a new domain is not noise
FIRST_NOISE = 2.0  # the noise at first, in units of that of a fair batch
MOST = 0.9  # of the way to the statistics of a batch, at once


class Observation(NamedTuple):
    """What a batch of ``size`` images shows to one layer."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    spread: Tensor  # how much the means of its images differ, in units of the variance; 0-dim
    size: int


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
    """
    scale = gate.var + eps
    surprise = ((seen.mean - gate.mean).square() / scale).mean()
    surprise = surprise + 0.5 * ((seen.var + eps) / scale).log().square().mean()
    first = gate.noise == 0
    start = FIRST_NOISE * (seen.spread if seen.size > 1 else surprise)
    per_image = torch.where(first, start.clamp_min(1e-6 * seen.size), gate.noise)
    noise = per_image / seen.size
    news = torch.maximum(surprise - noise, gate.uncertainty)
    uncertainty = torch.where(surprise > JUMP * (gate.uncertainty + noise), news, gate.uncertainty)
    uncertainty = torch.where(first, surprise, uncertainty)
    gain = (uncertainty / (uncertainty + noise)).clamp(0, MOST)
    share = seen.size / SAMPLES
    learned = torch.lerp(per_image, torch.minimum(surprise, CLIP * noise) * seen.size, 1 - (1 - LEARNS_NOISE) ** share)
    return Gate(
        torch.lerp(gate.mean, seen.mean, gain),
        torch.lerp(gate.var, seen.var, gain),
        (1 - gain) * uncertainty + DRIFT * share * per_image / SAMPLES,
        torch.maximum(torch.where(first, per_image, learned), 0.5 * seen.spread),
    )


class GatedBN1d(AdaptiveNorm):
    """Gated batch normalisation of (B, C) or (B, C, L).

    Inside ``observing()`` a batch is normalised by the statistics as it would move them, and its observation is handed
    to whoever observes; elsewhere by the statistics as they are. They only move when :meth:`move` is called.
    """

    ranks: tuple[int, ...] = (2, 3)
    uncertainty: Tensor
    noise: Tensor

    def __init__(self, num_features: int, *, eps: float = 1e-5, affine: bool = True, **factory: Any) -> None:
        super().__init__(num_features, eps=eps, affine=affine, **factory)
        self.register_buffer("uncertainty", torch.zeros((), **factory))
        self.register_buffer("noise", torch.zeros((), **factory))

    @property
    def gate(self) -> Gate:
        """The statistics as they are."""
        return Gate(self.running_mean, self.running_var, self.uncertainty, self.noise)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x`` (B, C, ...); the result has its shape and dtype."""
        self.check_input(x)
        gate = self.gate
        observers: list[tuple[GatedBN1d, Observation]] | None = getattr(_open, "observers", None)
        if observers is not None:
            seen = self._observe(x)
            observers.append((self, seen))
            gate = follow(gate, seen, self.eps)
        return F.batch_norm(x, gate.mean, gate.var, self.weight, self.bias, False, 0.0, self.eps)

    def move(self, seen: Observation) -> None:
        """Move the statistics by an observation."""
        with torch.no_grad():
            for own, new in zip(self.gate, follow(self.gate, seen, self.eps)):
                own.copy_(new)

    def _observe(self, x: Tensor) -> Observation:
        mean, var = (v.to(self.running_mean.dtype) for v in channel_statistics(x))
        if len(x) == 1:
            return Observation(mean, var, torch.zeros_like(self.noise), 1)
        images = x.flatten(2).mean(2) if x.ndim > 2 else x
        spread = (images.to(mean.dtype).var(0) / (self.running_var + self.eps)).mean()
        return Observation(mean, var, spread, len(x))


class GatedBN2d(GatedBN1d):
    """Gated batch normalisation of (B, C, H, W).

    >>> layer = GatedBN2d.from_bn(torch.nn.BatchNorm2d(2))
    >>> with observing() as seen:
    ...     _ = layer(torch.randn(8, 2, 4, 4) + 3)
    >>> seen[0][0].move(seen[0][1])
    >>> bool((layer.running_mean > 1).all())
    True
    """

    ranks = (4,)


_open = threading.local()


@contextlib.contextmanager
def observing() -> Iterator[list[tuple[GatedBN1d, Observation]]]:
    """Collect, in this thread, what the gated layers of the networks that run in here see."""
    before = getattr(_open, "observers", None)
    seen: list[tuple[GatedBN1d, Observation]] = []
    _open.observers = seen
    try:
        yield seen
    finally:
        _open.observers = before
