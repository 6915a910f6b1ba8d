"""Gated layers moved on by what a batch has shown: all of them at once, their channels side by side.

By itself, a layer takes a hundred operations on a few numbers each, and most of their time is that of calling them.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

from grotta.nn.gate import FEW, Gate, Layers, Observation, Offsets, follow, pooled, rebalanced
from grotta.nn.gated_bn import GatedBN1d, folded
from grotta.nn.shown import Shown

LARGEST = 2**17  # numbers in the offsets of layers that move together: more would not stay near the processor


def move_gates(
    seen: Iterable[tuple[GatedBN1d, Shown]], labels: Tensor | None = None, is_new_domain: Tensor | None = None
) -> None:
    """Move the statistics of layers, and their offsets if there are ``labels`` (B, K), by what a batch has shown.

    In a new domain (0-dim, of truth values), layers jump sooner.
    """
    with torch.no_grad():
        for once in _each_once(seen):
            for group in _alike(once):
                _move_together(group, labels, is_new_domain)


def _each_once(seen: Iterable[tuple[GatedBN1d, Shown]]) -> Iterator[dict[GatedBN1d, Shown]]:
    """What was seen, in parts that have each layer once: one that a network runs twice moves twice."""
    left = list(seen)
    while left:
        once: dict[GatedBN1d, Shown] = {}
        left = [(layer, shown) for layer, shown in left if once.setdefault(layer, shown) is not shown]
        yield once


def _alike(seen: Mapping[GatedBN1d, Shown]) -> Iterable[dict[GatedBN1d, Shown]]:
    """Layers whose numbers can stand side by side, in groups: usually one."""
    groups: dict[tuple[object, ...], dict[GatedBN1d, Shown]] = {}
    numbers = 0
    for layer, shown in seen.items():
        offsets = layer.offsets
        numbers += offsets.numel()
        kind = (offsets.device, offsets.dtype, layer.eps, len(offsets))
        images = (len(shown.images), int(layer.waiting_images))
        groups.setdefault((*kind, *images, numbers // LARGEST), {})[layer] = shown
    return groups.values()


def _move_together(seen: Mapping[GatedBN1d, Shown], labels: Tensor | None, is_new_domain: Tensor | None) -> None:
    one, shown = next(iter(seen.items()))
    device, dtype = one.running_mean.device, one.running_mean.dtype
    layers = _layers(tuple(layer.num_features for layer in seen), device, dtype)
    with torch.autocast(device.type, enabled=False):  # statistics are not for half precision
        labels = folded(labels, len(one.offsets), dtype)
        gates = [layer.gate for layer in seen]
        gate, offsets, now = _gate(gates), _offsets(seen), _with_those_waiting(seen, _observation(seen, labels))
        if now.size < FEW:
            _let_wait(seen, now)
        else:
            gate = follow(gate, rebalanced(now, offsets, layers), one.eps, layers, is_new_domain)
            _take_gate(gates, gate)
            _let_none_wait(seen)
        rows = len(shown.images)
        if labels is not None and rows % len(labels) == 0:
            images = torch.cat([shown.images for shown in seen.values()], 1)
            if rows > len(labels):  # some models flatten (B, tokens, C)
                images = images.view(len(labels), -1, images.shape[1]).mean(1)
            _take_offsets(seen, offsets.after(images - gate.mean, labels, rows, layers))


@functools.lru_cache(maxsize=64)
def _layers(channels: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Layers:
    """Which channel belongs to which layer, copied to a device once."""
    sizes = torch.tensor(channels, device="cpu")
    owner = torch.arange(len(channels), device="cpu").repeat_interleave(sizes)
    return Layers(owner.to(device), sizes.to(device, dtype))


def _observation(seen: Mapping[GatedBN1d, Shown], labels: Tensor | None) -> Observation:
    means, variances, betweens, images = zip(*seen.values())
    mix = None if labels is None else labels.mean(0)[:, None].expand(-1, len(seen))
    return Observation(torch.cat(means), torch.cat(variances), torch.cat(betweens), len(images[0]), mix)


def _with_those_waiting(seen: Mapping[GatedBN1d, Shown], now: Observation) -> Observation:
    waiting = int(next(iter(seen)).waiting_images)
    if not waiting:
        return now
    mean, var, between = torch.cat([layer.waiting for layer in seen], 1)
    mix = torch.stack([layer.waiting_mix for layer in seen], 1)
    return pooled(Observation(mean, var, between, waiting, mix), now)


def _let_wait(seen: Iterable[GatedBN1d], now: Observation) -> None:
    channels = [layer.num_features for layer in seen]
    waiting = torch.split(torch.stack((now.mean, now.var, now.between)), channels, 1)
    torch._foreach_copy_([layer.waiting for layer in seen], list(waiting))
    for place, layer in enumerate(seen):
        classes = len(layer.waiting_mix)
        if now.mix is not None:
            layer.waiting_mix.copy_(now.mix[:, place])
        elif classes:
            layer.waiting_mix.fill_(1 / classes)  # which corrects nothing
        layer.waiting_images.fill_(now.size)


def _let_none_wait(seen: Iterable[GatedBN1d]) -> None:
    for layer in seen:
        if layer.waiting_images:
            layer.waiting_images.zero_()


def _gate(gates: Iterable[Gate]) -> Gate:
    means, variances, uncertainties, noises = zip(*gates)
    return Gate(torch.cat(means), torch.cat(variances), torch.stack(uncertainties), torch.stack(noises))


def _take_gate(gates: Iterable[Gate], gate: Gate) -> None:
    means, variances, uncertainties, noises = zip(*gates)
    channels = [len(mean) for mean in means]
    statistics = [*torch.split(gate.mean, channels), *torch.split(gate.var, channels)]
    new = [*statistics, *gate.uncertainty.unbind(), *gate.noise.unbind()]
    torch._foreach_copy_([*means, *variances, *uncertainties, *noises], new)


def _offsets(seen: Iterable[GatedBN1d]) -> Offsets:
    means, images = zip(*((layer.offsets, layer.offset_images) for layer in seen))
    return Offsets(torch.cat(means, 1), torch.stack(images, 1))


def _take_offsets(seen: Iterable[GatedBN1d], offsets: Offsets) -> None:
    channels = [layer.num_features for layer in seen]
    own = [*(layer.offsets for layer in seen), *(layer.offset_images for layer in seen)]
    torch._foreach_copy_(own, [*torch.split(offsets.mean, channels, 1), *offsets.images.unbind(1)])
