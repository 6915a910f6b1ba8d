"""The edge of an adapter: what may come in, and the form in which it is passed on."""

import torch
from torch import Tensor

# Resampling with a sharp kernel overshoots a little; normalised or 0..255 images are far beyond this.
OVERSHOOT = 0.25


def check_images(x: object, *, device: torch.device, values: bool) -> Tensor:
    """``x`` itself if it is a batch of images that an adapter takes, else an error that says what it should be.

    ``values`` asks for a look at the pixels.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch.Tensor of images (B, C, H, W), got {type(x).__name__}")
    if x.ndim != 4:
        raise ValueError(
            f"x must have shape (B, C, H, W), got {tuple(x.shape)}"
            + ("; a single image goes in as x[None]" if x.ndim == 3 else "")
        )
    if x.numel() == 0:
        raise ValueError(f"x must hold at least one image with at least one pixel, got shape {tuple(x.shape)}")
    if x.dtype != torch.uint8 and not x.is_floating_point():
        raise TypeError(f"x must be uint8 in 0..255 or floating point in [0, 1], got {x.dtype}")
    if x.device != device:
        raise ValueError(f"x is on {x.device}, but the model is on {device}")
    if values and x.dtype != torch.uint8:
        _check_range(x)
    return x


def _check_range(x: Tensor) -> None:
    low, high = torch.stack(torch.aminmax(x.detach())).tolist()  # NaN goes through both
    if not (low == low and high == high):
        raise ValueError("x has NaN pixels")
    if low in (float("inf"), -float("inf")) or high in (float("inf"), -float("inf")):
        raise ValueError("x has infinite pixels")
    if low < -OVERSHOOT or high > 1 + OVERSHOOT:
        raise ValueError(
            f"x must be in [0, 1], got values from {low:.4g} to {high:.4g}; a model that wants normalised input takes "
            "mean= and std= when it is wrapped, and 0..255 images go in as uint8"
        )


def ordinary(x: Tensor) -> Tensor:
    """``x`` without gradient and fit for autograd, even if it was made under ``torch.inference_mode``."""
    return x.clone() if x.is_inference() else x.detach()


def to_float(x: Tensor, dtype: torch.dtype, memory_format: torch.memory_format) -> Tensor:
    """``x`` as the network takes it: floating point in [0, 1].

    >>> to_float(torch.tensor([[[[255]]]], dtype=torch.uint8), torch.float32, torch.contiguous_format)
    tensor([[[[1.]]]])
    """
    if x.dtype == torch.uint8:
        # One after the other: to convert and to transpose in one copy takes twice as long.
        return x.to(dtype).div_(255).contiguous(memory_format=memory_format)
    return x.to(dtype, memory_format=memory_format)
