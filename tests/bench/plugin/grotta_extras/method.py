"""A method: batch statistics, and predictions that are sharpened."""

from typing import Any

from torch import nn

import grotta
from grotta.methods import BN


@grotta.register("sharp_bn")
class SharpBN(BN):
    """BN with the output adaptation of this package."""

    title, place, cost = "Sharp BN", 15, 1.1

    def __init__(self, model: nn.Module, *, output: str | None = "sharpened", **options: Any) -> None:
        super().__init__(model, output=output, **options)
