"""Batch normalisation whose statistics follow the stream at the speed that the stream asks for."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from grotta.nn.gate import Gate, Observation, Offsets, pooled, rebalanced, statistics_after
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.normalise import normalise
from grotta.nn.robust_bn import preserve_gradient
from grotta.nn.shown import Shown, shown_by
from grotta.nn.statistics import channel_statistics

MOST_CLASSES = 100  # beyond this many, classes share offsets, which bounds their size


class GatedBN1d(AdaptiveNorm):
    """Gated batch normalisation of (B, C) or (B, C, L).

    Inside ``observing()`` a batch is normalised by the statistics as it would move them, and what it shows is handed
    to whoever observes; elsewhere by the statistics as they are. They only move when :func:`move_gates` is called, and
    only when there are enough images: what a small batch shows waits for the next ones.

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
        observer: _Observer | None = getattr(_open, "observer", None)
        if observer is not None:
            gate = self.gate
            mean, var = self._observe(gate, shown_by(x, gate.mean.dtype), observer)
            return normalise(x, mean, var, self.weight, self.bias, self.eps)
        mean, var = self.running_mean, self.running_var
        if torch.is_grad_enabled() and (x.requires_grad or (self.weight is not None and self.weight.requires_grad)):
            return preserve_gradient(x, self.weight, self.bias, channel_statistics(x), (mean, var), self.eps)
        return normalise(x, mean, var, self.weight, self.bias, self.eps)

    def _observe(self, gate: Gate, shown: Shown, observer: "_Observer") -> tuple[Tensor, Tensor]:
        """Tell the observer; the statistics as what is shown, and what waits, would move them."""
        with _without_autocast(shown.mean.device.type):  # statistics are not for half precision
            seen = shown.observation(observer.mix(self))
            if waiting := int(self.waiting_images):
                mean, var, between = self.waiting
                seen = pooled(Observation(mean, var, between, waiting, self.waiting_mix), seen)
            if seen.mix is not None:
                seen = rebalanced(seen, Offsets(self.offsets, self.offset_images))
            observer.seen.append((self, shown))
            return statistics_after(gate, seen, self.eps, observer.is_new_domain)


class GatedBN2d(GatedBN1d):
    """Gated batch normalisation of (B, C, H, W).

    >>> from grotta.nn import move_gates
    >>> layer = GatedBN2d.from_bn(torch.nn.BatchNorm2d(2))
    >>> with observing() as seen:
    ...     _ = layer(torch.randn(16, 2, 4, 4) + 3)
    >>> move_gates(seen)
    >>> bool((layer.running_mean > 1).all())
    True
    """

    ranks = (4,)


def folded(labels: Tensor | None, classes: int, dtype: torch.dtype) -> Tensor | None:
    """Labels (B, K) for a layer with offsets of so many ``classes``: those that share one are added up.

    None if there are no offsets.

    >>> folded(torch.tensor([[0.1, 0.2, 0.7]]), 2, torch.float32)
    tensor([[0.8000, 0.2000]])
    """
    if labels is None or not classes:
        return None
    labels = labels.to(dtype)
    if labels.shape[1] == classes:
        return labels
    place = torch.arange(labels.shape[1], device=labels.device) % classes
    return labels.new_zeros(len(labels), classes).index_add_(1, place, labels)


class _Observer(NamedTuple):
    """What the layers have seen so far, and the labels of what they are shown."""

    seen: list[tuple[GatedBN1d, Shown]]
    labels: Tensor | None
    is_new_domain: Tensor | None
    mixes: dict[tuple[int, torch.dtype], Tensor | None]

    def mix(self, layer: GatedBN1d) -> Tensor | None:
        """The mix of the labels for ``layer``, which is the same for most layers; None if there is none."""
        if self.labels is None:
            return None
        key = len(layer.offsets), layer.offsets.dtype
        if key not in self.mixes:
            labels = folded(self.labels, *key)
            self.mixes[key] = None if labels is None else labels.mean(0)
        return self.mixes[key]


def _without_autocast(device: str) -> contextlib.AbstractContextManager[object]:
    """Autocast switched off, which takes as long as several operations, if it is on."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else contextlib.nullcontext()


_open = threading.local()


@contextlib.contextmanager
def observing(
    labels: Tensor | None = None, is_new_domain: Tensor | None = None
) -> Iterator[list[tuple[GatedBN1d, Shown]]]:
    """Collect, in this thread, what the gated layers of the networks that run in here see.

    ``labels`` (B, K) are the probable classes of the batch that they are shown, if these are known. In a new
    domain (0-dim, of truth values), layers jump sooner.
    """
    before = getattr(_open, "observer", None)
    _open.observer = _Observer([], labels, is_new_domain, {})
    try:
        yield _open.observer.seen
    finally:
        _open.observer = before
