"""The gate: statistics that follow a stream at the speed that the stream asks for."""

from typing import NamedTuple

import torch
from torch import Tensor

SAMPLES = 64  # speeds are per this many images, whatever the size of a batch
JUMP = 8.0  # a batch this many times as surprising as expected lets a layer jump ...
JUMP_THEN = 2.0  # ... and where images look like a new domain
FEW = 16  # images: fewer are no sample, and wait for those of the next batches
DRIFT = 0.001  # how much the statistics are expected to drift, in units of the noise
LEARNS_NOISE = 0.1  # speed at which the noise level follows
CLIP = 3.0  # of surprises, where the noise level is learned: a new domain is not noise
FIRST_NOISE = 2.0  # the noise at first, in units of that of a fair batch
MOST = 0.9  # of the way to the statistics of a batch, at once
OFFSETS_FADE = 0.98  # what is kept of an offset's weight over SAMPLES images
LEAST_VAR = 0.1  # of a batch's variance, whatever its classes are taken to explain


class Layers(NamedTuple):
    """Which layer each channel belongs to, where those of L layers stand side by side; of one layer, it need not say.

    >>> two = Layers(torch.tensor([0, 0, 1]), torch.tensor([2.0, 1.0]))
    >>> two.mean(torch.tensor([1.0, 3.0, 5.0])), two.each(torch.tensor([7.0, 8.0]))
    (tensor([2., 5.]), tensor([7., 7., 8.]))
    """

    owner: Tensor | None = None  # (C,), indices of layers
    channels: Tensor | None = None  # (L,), how many each of them has

    def mean(self, values: Tensor) -> Tensor:
        """The mean over a layer's channels: (C,) to (L,), or to 0-dim for one layer."""
        if self.owner is None or self.channels is None:
            return values.mean()
        return torch.zeros_like(self.channels).index_add_(0, self.owner, values) / self.channels

    def each(self, values: Tensor) -> Tensor:
        """Values of layers for every channel: (..., L) to (..., C); those of one layer, (...), to (..., 1)."""
        return values[..., None] if self.owner is None else values.index_select(-1, self.owner)


ONE = Layers()


class Observation(NamedTuple):
    """What ``size`` images show to a layer, or to each of several."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,), biased
    between: Tensor  # (C,), of the means of the images, biased
    size: int
    mix: Tensor | None = None  # (K,), of their classes, where these are known; (K, L) for several layers


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
    uncertainty: Tensor  # expected squared error of the mean, in units of the variance; 0-dim, (L,) of several layers
    noise: Tensor  # the same of a single image's observation; 0 until the first batch


def follow(
    gate: Gate, seen: Observation, eps: float, layers: Layers = ONE, is_new_domain: Tensor | None = None
) -> Gate:
    """The gate after an observation.

    The surprise of a batch, d = mean of (mean_b - mean)^2 / var and of half the squared log-ratio of the variances, is
    noise (sampling; few classes in the batch) or news (a new domain). As much as d goes beyond ``JUMP`` times what was
    expected is news, and with ``is_new_domain``, ``JUMP_THEN`` times: it becomes uncertainty, and the gain
    u / (u + noise) lets the statistics jump. Otherwise they settle, ever more slowly. What a stream's usual batches
    look like, such as one class at a time, is its noise level, learned from clipped surprises: where batches are poor
    samples the statistics are patient.

    The variance of a small batch lacks how far its images lie from those of other batches (all of it, in a batch of
    one): the squared distance of its mean is added, as far as that is noise and not news.
    """
    far = _distance(gate, seen, eps)
    surprise = layers.mean(far.each)
    spread = layers.mean(seen.between / far.scale) * (seen.size / max(seen.size - 1, 1))  # of images, not their sample
    first = gate.noise == 0
    start = FIRST_NOISE * (spread if seen.size > 1 else surprise)
    noise = torch.where(first, start.clamp_min(1e-6 * seen.size), gate.noise)
    gate = gate._replace(uncertainty=torch.where(first, surprise, gate.uncertainty), noise=noise)
    step = _step(gate, surprise, seen.size, is_new_domain)
    share = seen.size / SAMPLES
    usual = torch.minimum(surprise, step.clip) * seen.size
    learned = torch.lerp(noise, usual, 1 - (1 - LEARNS_NOISE) ** share)
    return Gate(
        *_moved(gate, seen, far, layers.each(step.gain), layers.each(step.clip)),
        torch.add((1 - step.gain) * step.uncertainty, noise, alpha=DRIFT * share / SAMPLES),
        torch.maximum(torch.where(first, noise, learned), 0.5 * spread),
    )


def statistics_after(
    gate: Gate, seen: Observation, eps: float, is_new_domain: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of the gate of one layer after an observation, as :func:`follow` has them, without the rest."""
    if gate.noise.device.type != "cpu" or not gate.noise:  # the first, for all that is known without waiting
        return follow(gate, seen, eps, is_new_domain=is_new_domain)[:2]
    # As in _step, with plain numbers: on a CPU each of its operations takes ten times as long as reading a number.
    far = _distance(gate, seen, eps)
    surprise = far.each.sum().item() / far.each.shape[0]
    uncertainty, noise = gate.uncertainty.item(), gate.noise.item() / seen.size
    jump = JUMP_THEN if is_new_domain is not None and is_new_domain.item() else JUMP
    if surprise > jump * (uncertainty + noise):
        uncertainty = surprise - noise
    gain = min(max(uncertainty / (uncertainty + noise), 0.0), MOST)
    return _moved(gate, seen, far, gain, CLIP * noise)


class _Distance(NamedTuple):
    """How far an observation lies from a gate."""

    squared: Tensor  # (C,), of the means
    scale: Tensor  # (C,), what that is measured in
    each: Tensor  # (C,), the surprise of each channel


class _Step(NamedTuple):
    """What an observation means for a gate; 0-dim, or (L,) of several layers."""

    clip: Tensor  # the largest surprise that counts as noise
    uncertainty: Tensor
    gain: Tensor


def _distance(gate: Gate, seen: Observation, eps: float) -> _Distance:
    scale = gate.var + eps
    squared = (seen.mean - gate.mean).square()
    wider = ((seen.var + eps) / scale).log().square()
    return _Distance(squared, scale, torch.add(squared / scale, wider, alpha=0.5))


def _step(gate: Gate, surprise: Tensor, size: int, is_new_domain: Tensor | None) -> _Step:
    noise = gate.noise / size
    jump = JUMP if is_new_domain is None else torch.where(is_new_domain, JUMP_THEN, JUMP)
    is_news = surprise > jump * (gate.uncertainty + noise)
    uncertainty = torch.where(is_news, surprise - noise, gate.uncertainty)
    return _Step(CLIP * noise, uncertainty, (uncertainty / (uncertainty + noise)).clamp(0, MOST))


def _moved(
    gate: Gate, seen: Observation, far: _Distance, gain: Tensor | float, clip: Tensor | float
) -> tuple[Tensor, Tensor]:
    noise = torch.minimum(far.squared, far.scale * clip)
    return torch.lerp(gate.mean, seen.mean, gain), torch.lerp(gate.var, seen.var + (1 - gain) * noise, gain)


class Offsets(NamedTuple):
    """How far the mean of each class lies from that of all, and how many images say so."""

    mean: Tensor  # (K, C)
    images: Tensor  # (K,), or (K, L) for several layers

    def after(self, images: Tensor, labels: Tensor, rows: int, layers: Layers = ONE) -> "Offsets":
        """The offsets after the means (B, C) of images, less those of all, of ``labels`` (B, K).

        ``rows``: how many rows of the batch these were.
        """
        before = self.images * OFFSETS_FADE ** (rows / SAMPLES)
        counts = labels.sum(0)
        after = before + counts.view(-1, *[1] * (before.ndim - 1))
        sums = torch.addmm(self.mean * layers.each(before), labels.T, images)
        return Offsets(sums / layers.each(after.clamp_min(torch.finfo(after.dtype).tiny)), after)


def rebalanced(seen: Observation, offsets: Offsets, layers: Layers = ONE) -> Observation:
    """What the images would have shown if every class had its equal share; as they are if the mix is not known.

    A batch of few classes differs from the stream's statistics because of its classes, not because the world has
    changed. With the classes' offsets known, its mean is put right by the offset of its own mix, and its variance by
    the spread between classes that it lacks.

    Args:
        seen: the observation.
        offsets: of all classes; those of which nothing has been seen are taken to be zero.
        layers: whose channels these are.
    """
    if seen.mix is None:
        return seen
    offset = offsets.mean * layers.each(offsets.images / (offsets.images + 1))
    squares, mix = offset.square(), layers.each(seen.mix)
    own, usual = (mix * offset).sum(0), offset.mean(0)
    lacking = (squares.mean(0) - usual.square()) - ((mix * squares).sum(0) - own.square())
    return seen._replace(mean=seen.mean - (own - usual), var=torch.maximum(seen.var + lacking, LEAST_VAR * seen.var))
