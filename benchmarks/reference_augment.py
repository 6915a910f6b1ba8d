"""The strong view written operation by operation on the padded image: what `grotta.augment` must equal, slowly.

Each operation is the textbook one, works on the whole batch and keeps its input's data type, so that in float64 it
serves the tests as the exact answer and in float32 the speed benchmark as the composition that is replaced.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from grotta.augment import StrongParams


def strong_view(x: Tensor, params: StrongParams, noise: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    colour = {
        "brightness": lambda y: (params.brightness * y).clamp(0, 1),
        "contrast": lambda y: adjust_contrast(y, params.contrast),
        "saturation": lambda y: adjust_saturation(y, params.saturation),
        "hue": lambda y: adjust_hue(y, params.hue),
        "gamma": lambda y: (y**params.gamma).clamp(0, 1),
    }
    x = x.clamp(0, 1)
    for name in params.order:
        x = colour[name](x)
    x = F.pad(x, (width // 2, width // 2, height // 2, height // 2), mode=params.padding)
    x = affine(x, params.angle, params.translate, params.scale)
    x = gaussian_blur(x, params.sigma)
    x = x[..., height // 2 : height // 2 + height, width // 2 : width // 2 + width]
    x = x.flip(-1) if params.flip else x
    return (x + noise).clamp(0, 1)


def grey(x: Tensor) -> Tensor:
    if x.shape[1] == 1:
        return x
    weights = torch.tensor([0.2989, 0.587, 0.114], dtype=x.dtype).view(1, 3, 1, 1)
    return (weights * x).sum(1, keepdim=True)


def adjust_contrast(x: Tensor, factor: float) -> Tensor:
    return (factor * x + (1 - factor) * grey(x).mean((1, 2, 3), keepdim=True)).clamp(0, 1)


def adjust_saturation(x: Tensor, factor: float) -> Tensor:
    return x if x.shape[1] == 1 else (factor * x + (1 - factor) * grey(x)).clamp(0, 1)


def adjust_hue(x: Tensor, turns: float) -> Tensor:
    if x.shape[1] == 1:
        return x
    hue, saturation, value = rgb_to_hsv(x)
    return hsv_to_rgb((hue + turns) % 1, saturation, value)


def rgb_to_hsv(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    red, green, blue = x.unbind(1)
    value, argmax = x.max(1)
    chroma = value - x.amin(1)
    safe = torch.where(chroma == 0, torch.ones_like(chroma), chroma)
    sector = torch.where(
        argmax == 0,
        (green - blue) / safe % 6,
        torch.where(argmax == 1, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    saturation = chroma / torch.where(value == 0, torch.ones_like(value), value)
    return torch.where(chroma == 0, torch.zeros_like(sector), sector / 6), saturation, value


def hsv_to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    sector = torch.floor(hue * 6)
    part = hue * 6 - sector
    low = value * (1 - saturation)
    falling = value * (1 - part * saturation)
    rising = value * (1 - (1 - part) * saturation)
    choices = torch.stack(
        (
            torch.stack((value, falling, low, low, rising, value)),
            torch.stack((rising, value, value, falling, low, low)),
            torch.stack((low, low, rising, value, value, falling)),
        )
    )
    index = (sector.long() % 6)[None, None].expand(3, 1, *hue.shape)
    return choices.gather(1, index)[:, 0].transpose(0, 1).clamp(0, 1)


def affine(x: Tensor, degrees: float, translate: tuple[int, int], scale: float) -> Tensor:
    """Rotate clockwise and scale about the centre, then shift; bilinear, zeros outside."""
    height, width = x.shape[-2:]
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    down, across = torch.meshgrid(
        torch.arange(height, dtype=x.dtype) - (height - 1) / 2 - translate[1],
        torch.arange(width, dtype=x.dtype) - (width - 1) / 2 - translate[0],
        indexing="ij",
    )
    source_x, source_y = (cos * across + sin * down) / scale, (cos * down - sin * across) / scale
    grid = torch.stack((source_x * 2 / width, source_y * 2 / height), dim=-1)
    return F.grid_sample(x, grid.expand(len(x), -1, -1, -1), padding_mode="zeros", align_corners=False)


def gaussian_blur(x: Tensor, sigma: float) -> Tensor:
    channels = x.shape[1]
    offsets = torch.arange(-2, 3, dtype=x.dtype)
    weights = torch.exp(-0.5 * (offsets / sigma) ** 2)
    weights = weights / weights.sum()
    kernel = torch.outer(weights, weights).expand(channels, 1, 5, 5)
    return F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), kernel, groups=channels)
