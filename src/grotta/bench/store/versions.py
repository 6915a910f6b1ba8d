"""The software behind a result: versions, and a digest of all code that decides the bits of results."""

import functools
import hashlib
import platform
from pathlib import Path

import numpy as np
import torch

import grotta
from grotta._version import __version__

_DECIDING = ("augment.py", "functional", "memory", "methods", "models", "nn", "outputs", "streams")


def versions(device: str = "cpu") -> dict[str, str]:
    """Versions of the software that decides the bits of a result, and the kind of device it ran on."""
    return {
        "grotta": __version__,
        "code": code_digest(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "device": device,
    }


@functools.cache
def code_digest(package: Path = Path(grotta.__file__).parent) -> str:
    """A short digest of all code that decides the bits of results, which may differ under one version."""
    digest = hashlib.blake2b(digest_size=6)
    for part in _DECIDING:
        for path in [package / part] if part.endswith(".py") else sorted((package / part).rglob("*.py")):
            digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()
