"""A compact vision transformer (Hassani et al., 2021) for 32x32 images: the bundled source model with layer norms."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from grotta.models.input_norm import FASHION, InputNorm, Statistics


class Attention(nn.Module):
    """Self-attention over (B, tokens, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*qkv.unbind())
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return out


class Block(nn.Module):
    """Attention and a perceptron, each after a layer norm and with a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class CompactViT(nn.Module):
    """Two strided convolutions to tokens, a convolution that encodes their position, blocks, mean, linear.

    Shapes: (B, 3, H, W) in [0, 1] -> (B, num_classes); H and W are any multiples of 4.

    >>> import torch
    >>> CompactViT(16, 2, 2, num_classes=10, statistics=FASHION)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, width: int, depth: int, heads: int, num_classes: int, statistics: Statistics) -> None:
        super().__init__()
        self.input_norm = InputNorm(statistics)
        self.stem = nn.Sequential(
            nn.Conv2d(3, width // 2, 3, stride=2, padding=1), nn.GELU(), nn.Conv2d(width // 2, width, 3, 2, padding=1)
        )
        self.position = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.stem(self.input_norm(images))
        tokens = (maps + self.position(maps)).flatten(2).transpose(1, 2)
        logits: Tensor = self.head(self.norm(self.blocks(tokens)).mean(1))
        return logits


def fashion_vit(num_classes: int = 10) -> CompactViT:
    """Four blocks of width 64 for Fashion-MNIST at 32x32: small enough to train and adapt on one core."""
    return CompactViT(64, 4, 4, num_classes, FASHION)
