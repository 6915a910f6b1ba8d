"""What a caller of ``load`` may choose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grotta._check import check_whole


@dataclass(frozen=True)
class Options:
    """The checked arguments of :func:`grotta.data.load`; of the ``roots``, the first match wins and the last takes
    downloads.
    """

    roots: tuple[Path, ...]
    domains: tuple[str, ...] | None = None
    severity: int = 5
    seed: int = 0
    image_size: int = 224
    download: bool = True
    keep_decoded: bool = False

    def __post_init__(self) -> None:
        check_whole("severity", self.severity, at_least=1, below=6)
        check_whole("seed", self.seed, at_least=0)
        check_whole("image_size", self.image_size, at_least=1)

    def choose(self, available: Sequence[str], more: Callable[[], Sequence[str]] = tuple) -> tuple[str, ...]:
        """The wanted ones of the available domains; ``more`` lists others that may be asked for."""
        if self.domains is None:
            return tuple(available)
        known = available if set(self.domains) <= set(available) else [*dict.fromkeys([*available, *more()])]
        unknown = [domain for domain in self.domains if domain not in known]
        if unknown or not self.domains or len(set(self.domains)) < len(self.domains):
            raise ValueError(f"domains must be different ones of {', '.join(known)}; got {list(self.domains)}")
        return self.domains
