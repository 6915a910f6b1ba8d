"""What the public functions refuse, decided from shapes and Python numbers, never by waiting for the device."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from torch import Tensor


def check_matrix(name: str, value: Tensor, columns: str) -> None:
    """Refuse anything but a non-empty floating-point (B, ``columns``) tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor of shape (B, {columns}), got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}")
    if value.ndim != 2 or 0 in value.shape:
        raise ValueError(f"{name} must have shape (B, {columns}) with B, {columns} >= 1, got {tuple(value.shape)}")


def check_probs(probs: Tensor) -> None:
    """Refuse anything but (B, C) class probabilities with at least two classes."""
    check_matrix("probs", probs, "C")
    if probs.shape[1] < 2:
        raise ValueError(f"probs must have at least 2 classes, got shape {tuple(probs.shape)}")


def check_same_batch(probs: Tensor, features: Tensor) -> None:
    """Refuse features of another batch than the probabilities."""
    check_probs(probs)
    check_matrix("features", features, "d")
    if len(probs) != len(features):
        raise ValueError(
            f"probs and features must describe the same samples, got {len(probs)} and {len(features)} rows"
        )


def check_k(k: int) -> None:
    """Refuse a number of neighbours that is not a positive integer."""
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise TypeError(f"k must be an integer, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")


def check_sigma(sigma: float) -> None:
    """Refuse a kernel width that is not a positive finite number."""
    if not isinstance(sigma, Real):
        raise TypeError(f"sigma must be a number, got {sigma!r}")
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite, got {sigma}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is not among the choices, and list them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
