"""The layers next to the classifier, which SAR and DeYO leave alone: training them is the least stable."""

from collections.abc import Iterator
from typing import Any, ClassVar

from torch import nn

from grotta.methods.tent import Tent
from grotta.nn import Network

_NORMS = (nn.LayerNorm, nn.RMSNorm)


def without_last_stage(network: nn.Module, trained: dict[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    """``trained`` without the parameters of the network's last stage, which are frozen; all of it if nothing would be
    left.

    The last stage is ``layer4`` of a residual network; of a transformer it is the last quarter of its blocks, at most
    three (as of ViT-Base's twelve), with the norm layers that follow them.

    >>> net = nn.ModuleDict({"layer3": nn.BatchNorm2d(2), "layer4": nn.BatchNorm2d(2)})
    >>> list(without_last_stage(net, dict(net.named_parameters())))
    ['layer3.weight', 'layer3.bias']
    """
    skipped = tuple(_last_stage(network))
    kept = {name: p for name, p in trained.items() if not f".{name}".startswith(skipped)} if skipped else trained
    if not kept:
        return trained
    for name, parameter in trained.items():
        parameter.requires_grad_(name in kept)
    return kept


class SparingTent(Tent):
    """TENT that leaves the last stage alone, with the rates of SAR and DeYO as published, for batches of 64."""

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {},
        "official": {"optimizer": "sgd", "lr": 2.5e-4},
        "official-vit": {"optimizer": "sgd", "lr": 1e-3},
    }
    nesterov = False

    def trained_in(self, network: Network) -> dict[str, nn.Parameter]:
        """The affine parameters except those of the last stage."""
        return without_last_stage(network, super().trained_in(network))


def _last_stage(network: nn.Module) -> Iterator[str]:
    """Prefixes, from dot to dot, of the modules that belong to the last stage."""
    blocks = _transformer_blocks(network)
    last = f".{blocks[-1]}." if blocks else ""
    after = False
    for name, module in network.named_modules():
        path = f".{name}."
        if path.endswith(".layer4."):
            yield path
        after = after or path == last
        if after and not path.startswith(last) and isinstance(module, _NORMS):
            yield path
    for block in blocks[len(blocks) - min(3, -(-len(blocks) // 4)) :]:
        yield f".{block}."


def _transformer_blocks(network: nn.Module) -> list[str]:
    """Names of the blocks of the longest run of equal blocks that have two norm layers each, as transformers have."""
    longest: list[str] = []
    for name, module in network.named_modules():
        children = list(module.children()) if isinstance(module, nn.ModuleList | nn.Sequential) else []
        alike = len({type(child) for child in children}) == 1
        if alike and len(children) > max(1, len(longest)) and all(_is_transformer_block(child) for child in children):
            longest = [f"{name}.{index}" if name else index for index, _ in module.named_children()]
    return longest


def _is_transformer_block(module: nn.Module) -> bool:
    return sum(isinstance(part, _NORMS) for part in module.modules()) >= 2
