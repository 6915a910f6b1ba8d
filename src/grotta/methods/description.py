"""What an adapter adapts, in numbers and in one line."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grotta.methods.state import optimizer_tensors
from grotta.nn import AdaptiveNorm, BatchStatsBN1d, Network, affine_layers, norm_layers, storages

SOURCE, OF_BATCH, FOLLOWING = "of the source", "of each batch", "following the stream"


@dataclass(frozen=True)
class Description:
    """What :meth:`Adapter.describe` returns; ``str`` of it is one line.

    >>> line = str(Description("tent", {"BatchNorm": 19}, OF_BATCH, 1376, 272474, 1089896, 21504, 0, None))
    >>> line.split("; ")[0]
    'tent: 19 BatchNorm layers, statistics of each batch, 1,376 of 272,474 parameters trained, no output adaptation'
    >>> line.split("; ")[1]
    '1.1 MB shared with the model, 21.5 kB own'
    """

    method: str
    layers: dict[str, int]  # normalisation layers of one network, by kind
    statistics: str  # where the statistics of batch normalisations come from; "" without such layers
    trained: int  # parameters that are trained
    parameters: int  # of the model
    shared_bytes: int  # weights of the model that are used by reference
    own_bytes: int  # parameters, statistics and optimizer of the adapter itself
    memory_bytes: int  # reserved for images that are remembered
    output: str | None  # output adaptation

    @property
    def adapts(self) -> bool:
        """Whether anything is adapted."""
        return bool(self.trained or self.output or self.statistics not in ("", SOURCE))

    @property
    def lacks(self) -> str:
        """What a model lacks of which nothing can be adapted."""
        if "BatchNorm" in self.layers:
            return "no scale or shift to train in its normalisation layers"
        return "no batch normalisation layer" if self.layers else "no normalisation layer"

    def __str__(self) -> str:
        kinds = " and ".join(f"{count} {kind}" for kind, count in self.layers.items()) or "no normalisation"
        parts = [f"{kinds} layer{'' if sum(self.layers.values()) == 1 else 's'}"]
        parts += [f"statistics {self.statistics}"] if self.statistics else []
        parts += [f"{self.trained:,} of {self.parameters:,} parameters trained" if self.trained else "nothing trained"]
        parts += [f"output {self.output}" if self.output else "no output adaptation"]
        sizes = [f"{_size(self.shared_bytes)} shared with the model", f"{_size(self.own_bytes)} own"]
        sizes += [f"{_size(self.memory_bytes)} memory"] if self.memory_bytes else []
        return f"{self.method}: {', '.join(parts)}; {', '.join(sizes)}"


def describe(
    adapter: nn.Module, model: nn.Module, optimizer: torch.optim.Optimizer | None, **given: object
) -> Description:
    """The description of ``adapter``; ``given`` are the fields that only it knows."""
    networks = [module for module in adapter.children() if isinstance(module, Network)]
    layers = Counter(_kinds(networks[0])) if networks else Counter()
    shared = storages(model)
    own = [*adapter.parameters(), *adapter.buffers(), *(tensor for _, tensor in optimizer_tensors(optimizer))]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in own}
    model_sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in model.parameters()}
    return Description(
        layers=dict(layers),
        statistics=_statistics(adapter),
        trained=sum(p.numel() for p in trained_parameters(optimizer)),
        parameters=sum(p.numel() for p in model.parameters()),
        shared_bytes=sum(size for place, size in model_sizes.items() if place in sizes),
        own_bytes=sum(size for place, size in sizes.items() if place not in shared),
        **given,  # type: ignore[arg-type]
    )


def trained_parameters(optimizer: torch.optim.Optimizer | None) -> list[Tensor]:
    """Everything that ``optimizer`` trains."""
    return [] if optimizer is None else [p for group in optimizer.param_groups for p in group["params"]]


def _kinds(network: nn.Module) -> Iterator[str]:
    for _ in norm_layers(network):
        yield "BatchNorm"
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            yield "BatchNorm"
    for layer in affine_layers(network):
        yield type(layer).__name__


def _statistics(adapter: nn.Module) -> str:
    converted = [module for module in adapter.modules() if isinstance(module, AdaptiveNorm)]
    if any(not isinstance(layer, BatchStatsBN1d) for layer in converted):
        return FOLLOWING
    if converted:
        return OF_BATCH
    plain = any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in adapter.modules())
    return SOURCE if plain else ""


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
