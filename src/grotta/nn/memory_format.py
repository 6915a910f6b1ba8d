"""Where the channels_last memory format must not be used."""

from torch import nn


def channels_last_is_safe(network: nn.Module) -> bool:
    """Whether the backward pass of ``network`` can be trusted in channels_last.

    On a CPU, torch 2.13 writes beyond its memory in the gradient of the weight of a strided 1x1 convolution with fewer
    than 16 input channels, as RepVGG, MobileOne and FastViT have them in their first layer.

    >>> layer = nn.Conv2d(3, 48, 1, stride=2)
    >>> channels_last_is_safe(layer), channels_last_is_safe(layer.requires_grad_(False))
    (False, True)
    """
    return not any(_is_unsafe(layer) for layer in network.modules() if isinstance(layer, nn.Conv2d))


def _is_unsafe(layer: nn.Conv2d) -> bool:
    if not layer.weight.requires_grad or layer.weight.device.type != "cpu":
        return False
    few = layer.in_channels // layer.groups < 16
    return few and set(layer.kernel_size) == {1} and max(layer.stride) > 1
