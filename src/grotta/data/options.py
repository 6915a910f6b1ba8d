"""What a caller of ``load`` may choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Options:
    """The checked arguments of ``load``.

    Attributes:
        roots: the data roots, first match wins, downloads go into the last.
        domains: the wanted domains in the wanted order, or None for all.
        severity: of corruptions, 1 to 5.
        seed: of corruptions that are regenerated.
        image_size: of pictures that are decoded from files.
        download: whether missing data may be downloaded.
        keep_decoded: whether decoded pictures are kept in the cache.
    """

    roots: tuple[Path, ...]
    domains: tuple[str, ...] | None = None
    severity: int = 5
    seed: int = 0
    image_size: int = 224
    download: bool = True
    keep_decoded: bool = False

    def __post_init__(self) -> None:
        if not _is_whole(self.severity) or not 1 <= self.severity <= 5:
            raise ValueError(f"severity: expected 1, 2, 3, 4 or 5, got {self.severity!r}")
        if not _is_whole(self.seed) or self.seed < 0:
            raise ValueError(f"seed: expected an integer of at least 0, got {self.seed!r}")
        if not _is_whole(self.image_size) or self.image_size < 1:
            raise ValueError(f"image_size: expected a positive integer, got {self.image_size!r}")

    def choose(self, available: Sequence[str]) -> tuple[str, ...]:
        """The wanted ones of the available domains."""
        if self.domains is None:
            return tuple(available)
        unknown = [domain for domain in self.domains if domain not in available]
        if unknown or not self.domains or len(set(self.domains)) < len(self.domains):
            raise ValueError(f"domains: expected different ones of {list(available)}, got {list(self.domains)}")
        return self.domains


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
