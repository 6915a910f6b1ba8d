"""Normalisation layers without batch statistics: which they are, and that their copies are their own."""

import torch
from torch import nn

from grotta.nn import affine_layers, own_affine, shared_copy


class SomeRMSNorm(nn.Module):
    """As models of other packages have it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.square().mean(-1, keepdim=True).add(1e-6).rsqrt() * self.weight


class NormedLinear(nn.Module):
    """Called after a norm, but its weight is a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))


def test_all_kinds_are_found_and_nothing_else():
    found = [
        nn.LayerNorm(4),
        nn.GroupNorm(2, 4),
        nn.RMSNorm(4),
        nn.InstanceNorm2d(4, affine=True),
        SomeRMSNorm(4),
        type("LayerNorm2d", (nn.LayerNorm,), {})(4),
    ]
    others = [
        nn.BatchNorm2d(4),
        nn.LayerNorm(4, elementwise_affine=False),
        nn.InstanceNorm2d(4),
        nn.Linear(4, 4),
        NormedLinear(),
        nn.LocalResponseNorm(2),
    ]
    assert affine_layers(nn.Sequential(*found, *others)) == found


def test_copies_are_own_and_ties_stay_tied():
    tied = nn.LayerNorm(4)
    model = nn.Sequential(nn.Linear(4, 4), tied, nn.Sequential(tied), nn.GroupNorm(2, 4))
    model[3].weight = tied.weight
    network = shared_copy(model)
    own_affine(network)
    assert network[0].weight.data_ptr() == model[0].weight.data_ptr()
    assert network[1].weight.data_ptr() != tied.weight.data_ptr()
    assert network[3].weight is network[1].weight
    assert network[2][0] is network[1]
    assert torch.equal(network[1].weight, tied.weight)


def test_group_norm_trains_in_channels_last_as_in_the_plain_format():
    """With an input that needs no gradient, torch 2.13 crashes here without the guard."""
    torch.manual_seed(0)
    x = torch.rand(4, 6, 8, 8)
    gradients = []
    for memory_format in (torch.contiguous_format, torch.channels_last):
        layer = nn.GroupNorm(2, 6)
        own_affine(layer)
        own_affine(layer)  # twice: the guard is set once
        assert len(layer._forward_pre_hooks) == 1
        layer.requires_grad_(True)
        layer(x.contiguous(memory_format=memory_format)).square().sum().backward()
        gradients.append(layer.weight.grad)
    torch.testing.assert_close(*gradients)
