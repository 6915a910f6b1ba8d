"""Small networks and streams for the contract, and how runs are compared."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Literal

import torch
from torch import Tensor, nn

from grotta.methods import Adapter

CLASSES = 5
Norm = Literal["batch", "group", "layer", "none"]
_norm: ContextVar[Norm] = ContextVar("norm", default="batch")


@contextlib.contextmanager
def networks_with(norm: Norm) -> Iterator[None]:
    """Let :func:`small_model` make networks with this kind of normalisation by default."""
    token = _norm.set(norm)
    try:
        with warnings.catch_warnings():
            # Some methods have nothing to do on some networks and say so: they must work all the same.
            warnings.filterwarnings("ignore", "method .* finds nothing to adapt")
            yield
    finally:
        _norm.reset(token)


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of (B, C, H, W), as ConvNeXt has it."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise every position by itself."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


_NORMS: dict[Norm, Callable[[int], nn.Module]] = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(2, channels),
    "layer": ChannelNorm,
    "none": lambda channels: nn.Identity(),
}


def small_model(dtype: torch.dtype = torch.float32, norm: Norm | None = None) -> nn.Sequential:
    """A convolutional classifier of five classes that is small, but has what larger ones have."""
    make_norm = _NORMS[norm or _norm.get()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1, bias=False),
            make_norm(6),
            nn.ReLU(),
            nn.Sequential(nn.Conv2d(6, 8, 3, stride=2), make_norm(8), nn.ReLU()),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, CLASSES),
        ).to(dtype)
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None and layer.running_var is not None:
                layer.running_mean.normal_(0, 0.1)
                layer.running_var.uniform_(0.5, 1.5)
    return model


def batches(sizes: tuple[int, ...] = (8, 64, 1, 7, 70), seed: int = 0) -> Iterator[Tensor]:
    """Float images (B, 3, 12, 12) in [0, 1], a batch of each size."""
    generator = torch.Generator().manual_seed(seed)
    for size in sizes:
        yield torch.rand(size, 3, 12, 12, generator=generator)


def run(adapter: Adapter, stream: Iterator[Tensor]) -> list[Tensor]:
    """The outputs of ``adapter`` on ``stream``."""
    return [adapter(x) for x in stream]


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    """Whether two runs gave the same bits."""
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right))


def same_state(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Whether two states hold the same bits."""
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def refusal(call: Callable[[], object], what: str) -> str:
    """The message of the error that ``call`` raises."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return str(error)
    raise AssertionError(f"{what}: accepted")
