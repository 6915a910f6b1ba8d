"""Replace every batch normalisation of a network, faithfully or not at all."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_type
from grotta.nn.balanced_bn import BalancedBN1d, BalancedBN2d
from grotta.nn.batch_stats import BatchStatsBN1d, BatchStatsBN2d
from grotta.nn.gated_bn import GatedBN1d, GatedBN2d
from grotta.nn.iabn import IABN1d, IABN2d
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.robust_bn import GpreRBN1d, GpreRBN2d, Gradient, RBN1d, RBN2d, RobustBatchNorm
from grotta.nn.share import shared_copy

NormFactory = Callable[[_BatchNorm], nn.Module]


def convert_norm(model: nn.Module, factory: NormFactory) -> nn.Module:
    """A copy of ``model`` in which ``factory(bn)`` replaces every batch normalisation ``bn``.

    ``model`` is not changed; the copy shares all other weights with it by reference. A layer used in two places
    is converted once. Layers that cannot be converted faithfully raise an error that names them.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    >>> convert_norm(net, gpre_rbn(alpha=0.05))[1]
    GpreRBN2d(8, eps=1e-05, affine=True, alpha=0.05, gradient='exact', tracking=False)
    >>> type(net[1]).__name__
    'BatchNorm2d'
    """
    return replace_norms(shared_copy(check_type("model", model, nn.Module, "a torch.nn.Module")), factory)


def replace_norms(network: nn.Module, factory: NormFactory) -> nn.Module:
    """As :func:`convert_norm`, but in place, for a network of our own."""
    if isinstance(network, _BatchNorm):
        return _convert(network, "the model itself", factory)
    converted: dict[int, nn.Module] = {}
    for prefix, parent in list(network.named_modules()):
        # vars, not named_children: a layer shared within one parent is listed there under each of its names
        for name, child in list(parent._modules.items()):
            if isinstance(child, _BatchNorm):
                path = f"{prefix}.{name}" if prefix else name
                if id(child) not in converted:
                    converted[id(child)] = _convert(child, path, factory)
                setattr(parent, name, converted[id(child)])
    return network


def norm_layers(network: nn.Module) -> list[AdaptiveNorm]:
    """The converted layers of ``network``, each once, in order."""
    return [m for m in network.modules() if isinstance(m, AdaptiveNorm)]


@contextlib.contextmanager
def tracking(network: nn.Module, moving: bool = True) -> Iterator[None]:
    """Let the statistics of every robust or instance-aware layer of ``network`` move in here, if ``moving``.

    However the block ends, they are held still after it.
    """
    set_tracking(network, moving)
    try:
        yield
    finally:
        set_tracking(network, False)


def set_tracking(network: nn.Module, tracking: bool) -> None:
    """Let the statistics of every robust or instance-aware layer of ``network`` move, or hold them still."""
    for layer in norm_layers(network):
        if isinstance(layer, RobustBatchNorm | IABN1d):
            layer.tracking = tracking


def gpre_rbn(alpha: float = 0.05, gradient: Gradient = "exact") -> NormFactory:
    """Factory of gradient-preserving robust layers (GRoTTA)."""
    return lambda bn: _from_bn(bn, GpreRBN1d, GpreRBN2d, alpha=alpha, gradient=gradient)


def rbn(alpha: float = 0.05) -> NormFactory:
    """Factory of robust layers (RoTTA)."""
    return lambda bn: _from_bn(bn, RBN1d, RBN2d, alpha=alpha)


def batch_stats() -> NormFactory:
    """Factory of layers that normalise by the current batch (BN, PL, TENT, CoTTA)."""
    return lambda bn: _from_bn(bn, BatchStatsBN1d, BatchStatsBN2d)


@functools.cache  # the same factory each time: networks that never change are found by it
def iabn(k: float = 4.0, alpha: float = 0.01) -> NormFactory:
    """Factory of instance-aware layers (NOTE)."""
    return lambda bn: _from_bn(bn, IABN1d, IABN2d, k=k, alpha=alpha)


def gated(num_classes: int = 0) -> NormFactory:
    """Factory of layers whose statistics follow the stream through a gate (GRoTTA+)."""
    return lambda bn: _from_bn(bn, GatedBN1d, GatedBN2d, num_classes=num_classes)


def balanced(num_classes: int, eta: float = 0.01, gamma: float = 0.0) -> NormFactory:
    """Factory of layers with statistics of their own for each class (TRIBE)."""
    return lambda bn: _from_bn(bn, BalancedBN1d, BalancedBN2d, num_classes=num_classes, eta=eta, gamma=gamma)


def by_reference(factory: NormFactory) -> NormFactory:
    """As ``factory``, but its layers hold the parameters and statistics of those that they replace, not copies.

    >>> bn = nn.BatchNorm2d(2)
    >>> by_reference(iabn())(bn).running_mean is bn.running_mean
    True
    """

    def make(bn: _BatchNorm) -> nn.Module:
        new = factory(bn)
        new._parameters.update({name: bn._parameters[name] for name in new._parameters if name in bn._parameters})
        new._buffers.update({name: bn._buffers[name] for name in new._buffers if name in bn._buffers})
        return new

    return make


def _from_bn(bn: _BatchNorm, flat: type[AdaptiveNorm], spatial: type[AdaptiveNorm], **options: Any) -> AdaptiveNorm:
    """The layer that continues from ``bn``; one without statistics of the source keeps using the batch's."""
    if isinstance(bn, nn.BatchNorm3d):
        raise TypeError("BatchNorm3d has no adaptive counterpart: grotta adapts image classifiers (NCHW)")
    if bn.running_mean is None and flat.needs_running_statistics:
        flat, spatial, options = BatchStatsBN1d, BatchStatsBN2d, {}
    return (flat if isinstance(bn, nn.BatchNorm1d) else spatial).from_bn(bn, **options)


def _convert(bn: _BatchNorm, path: str, factory: NormFactory) -> nn.Module:
    try:
        new = check_type("the factory's layer", factory(bn), nn.Module, "a torch.nn.Module")
        if isinstance(bn, nn.SyncBatchNorm) and isinstance(new, AdaptiveNorm):
            new.ranks = AdaptiveNorm.ranks  # it replaces layers of any dimension
        if type(bn).forward in _PLAIN_FORWARDS:
            return new
        return _with_what_it_carries(bn, new, factory)
    except (TypeError, ValueError) as error:
        raise type(error)(f"cannot convert layer {path!r} ({type(bn).__name__}): {error}") from error


_PLAIN_FORWARDS = {_BatchNorm.forward, nn.SyncBatchNorm.forward}


def _with_what_it_carries(bn: _BatchNorm, new: nn.Module, factory: NormFactory) -> nn.Module:
    """Convert a subclass whose forward does more than normalise, such as timm's ``BatchNormAct2d``.

    The layer's own sub-modules (drop, act) are run after the new norm, in order; whether that is really all the
    subclass does is verified on random features.
    """
    carried = nn.Sequential(*bn.children())
    plain = (nn.BatchNorm1d if isinstance(bn, nn.BatchNorm1d) else nn.BatchNorm2d)(
        bn.num_features, bn.eps, affine=bn.affine, track_running_stats=bn.track_running_stats
    )
    plain.load_state_dict({k: v for k, v in bn.state_dict().items() if k in plain.state_dict()})
    like = next(iter(plain.state_dict().values()), torch.empty(0))
    probe = torch.linspace(-3, 3, 4 * bn.num_features * (1 if isinstance(bn, nn.BatchNorm1d) else 9))
    shape = (4, bn.num_features) if isinstance(bn, nn.BatchNorm1d) else (4, bn.num_features, 3, 3)
    probe = probe.view(shape).to(like.device, like.dtype)
    was_training = bn.training
    bn.eval(), plain.eval(), carried.eval()
    try:
        with torch.no_grad():
            faithful = torch.allclose(bn(probe), carried(plain.to(like.device, like.dtype)(probe)), atol=1e-5)
    finally:
        bn.train(was_training)
    if not faithful:
        raise ValueError(
            "its forward does more than batch normalisation and its sub-modules; replace it by a plain "
            "BatchNorm followed by what it adds"
        )
    return nn.Sequential(new, *bn.children()) if len(carried) else new
