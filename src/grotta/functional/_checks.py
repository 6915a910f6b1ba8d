"""Checks of tensors, decided from their shapes and types, never by waiting for the device."""

from torch import Tensor

from grotta._check import check_type


def check_matrix(name: str, value: Tensor, columns: str) -> None:
    """Refuse anything but a non-empty floating-point (B, ``columns``) tensor."""
    check_type(name, value, Tensor, f"a tensor of shape (B, {columns})")
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
    """Refuse features that are not of the same batch as the probabilities."""
    check_probs(probs)
    check_matrix("features", features, "d")
    if len(probs) != len(features):
        raise ValueError(
            f"probs and features must describe the same samples, got {len(probs)} and {len(features)} rows"
        )
