"""What every replacement of a batch normalisation layer shares: its parameters, taken from that layer."""

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from grotta._check import check_type


class AdaptiveNorm(nn.Module):
    """A normalisation layer that replaced a batch normalisation.

    ``weight``/``bias`` (None without affine) and ``running_mean``/``running_var`` are the layer's own copies: a
    network of shared weights differs from its siblings in these alone. ``train()`` and ``eval()`` do not matter.
    """

    ranks: tuple[int, ...] = (2, 3, 4)
    needs_running_statistics = True
    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, *, eps: float = 1e-5, affine: bool = True, **factory: Any) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        if affine:
            self.weight = nn.Parameter(torch.ones(num_features, **factory))
            self.bias = nn.Parameter(torch.zeros(num_features, **factory))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        self.register_buffer("running_mean", torch.zeros(num_features, **factory))
        self.register_buffer("running_var", torch.ones(num_features, **factory))

    @classmethod
    def from_bn(cls, bn: _BatchNorm, **options: Any) -> Self:
        """The layer that continues from ``bn``'s parameters and running statistics; ``bn`` is not changed."""
        check_type("bn", bn, _BatchNorm, "a batch normalisation layer")
        if bn.running_mean is None and cls.needs_running_statistics:
            raise ValueError(
                f"{cls.__name__} starts from running statistics, but this {type(bn).__name__} was made with "
                "track_running_stats=False and has none"
            )
        like = bn.running_mean if bn.running_mean is not None else bn.weight
        factory: dict[str, Any] = {} if like is None else {"device": like.device, "dtype": like.dtype}
        new = cls(bn.num_features, eps=bn.eps, affine=bn.affine, **options, **factory)
        with torch.no_grad():
            if bn.affine:
                assert new.weight is not None
                assert new.bias is not None
                new.weight.copy_(bn.weight)
                new.bias.copy_(bn.bias)
            if bn.running_mean is not None and bn.running_var is not None:
                new.running_mean.copy_(bn.running_mean)
                new.running_var.copy_(bn.running_var)
        return new

    def check_input(self, x: Tensor) -> None:
        """Refuse a tensor that this layer cannot normalise."""
        if x.ndim not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            raise ValueError(f"the input of {type(self).__name__} must have rank {ranks}, got shape {tuple(x.shape)}")
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"the input of {type(self).__name__} must have {self.num_features} channels, got shape {tuple(x.shape)}"
            )

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, affine={self.weight is not None}"
