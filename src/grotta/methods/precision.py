"""Mixed precision: follow the caller's autocast where it helps, ignore it where it is emulated."""

import contextlib
import warnings
from contextlib import AbstractContextManager

import torch


def caller_autocast(device: torch.device) -> AbstractContextManager[object]:
    """The caller's autocast as it is, or switched off, with a warning, on a CPU without bfloat16 arithmetic.

    There it is emulated and about forty times slower than float32.
    """
    if device.type != "cpu" or not torch.is_autocast_enabled("cpu") or _cpu_has_bfloat16():
        return contextlib.nullcontext()
    warnings.warn(
        "autocast is ignored: this CPU has no bfloat16 arithmetic (avx512_bf16 or amx), float32 is far faster",
        UserWarning,
        stacklevel=4,
    )
    return torch.autocast("cpu", enabled=False)


def _cpu_has_bfloat16() -> bool:
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
