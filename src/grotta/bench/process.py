"""Process settings that make adaptation fast: for grotta's own programs, never on ``import grotta``."""

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# glibc's numbers for mallopt, and the largest threshold it takes: large activations stay in the heap instead of being
# mapped and unmapped in every layer.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST = 2**31 - 1


def worker_environment() -> dict[str, str]:
    """The environment for a process that has one core to itself: this one's, with threads and allocator set."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "MALLOC_MMAP_THRESHOLD_": str(_LARGEST),
        "MALLOC_TRIM_THRESHOLD_": str(_LARGEST),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def tune_allocator() -> bool:
    """Keep large blocks in this process's heap; returns False where the C library does not support that."""
    libc = _libc()
    if libc is None or not hasattr(libc, "mallopt"):
        return False
    return bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST) and libc.mallopt(_M_TRIM_THRESHOLD, _LARGEST))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread: fastest with one process per core, and sums have the same bits everywhere.

    >>> import torch
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def forget_peak_memory() -> None:
    """Return free memory to the system and measure the peak from here on, where the system allows it."""
    gc.collect()
    libc = _libc()
    if libc is not None and hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def machine_memory() -> float:
    """The bytes of memory that this machine has; infinite if the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def peak_memory_mb() -> float:
    """The most memory that this process held at once since it started or :func:`forget_peak_memory`, in MB."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    return _lifetime_peak_mb()


def _lifetime_peak_mb() -> float:
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _libc() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
