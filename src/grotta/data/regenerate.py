"""Corrupted copies of a clean data set, made on first use and kept in the cache."""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from grotta.data.arrays import Images, cached_images
from grotta.data.corruptions import BENCHMARK_DOMAINS, Scale, corrupt, find_corruption
from grotta.data.pictures import Pictures
from grotta.data.progress import progress
from grotta.data.roots import cache_dir

# Clean pictures are read in pieces of this size, which bounds memory and changes no result.
READ_PIXELS = 1 << 23


@dataclass(frozen=True)
class Regenerated:
    """Domain -> corrupted pictures (n, H, W, 3), memory-mapped from the cache."""

    name: str  # of the clean data set
    digest: str  # of the clean pictures, so that different pictures of the same name never share a cache
    shape: tuple[int, int, int, int]  # (n, H, W, 3)
    # gives the clean pictures, an array or files; called when something has to be made
    open_clean: Callable[[], Images | Pictures]
    scale: Scale  # the published scale of the constants
    severity: int  # 1 to 5
    seed: int  # of everything random in a corruption
    # a digest of the clean pictures that does not depend on where they are; ``digest`` by default
    source: Callable[[], str] | None = None

    def __call__(self, corruption: str) -> Images:
        """The pictures of one corruption, made if they are not in the cache."""
        return cached_images(self.path(corruption), self.shape, partial(self._fill, corruption))

    def identity(self, corruption: str) -> str:
        """A digest of the pictures of one corruption, from everything that determines them."""
        source = self.source() if self.source else self.digest
        recipe = f"{source} {version_of(corruption)} {self.scale} {corruption} {self.severity} {self.seed}"
        return hashlib.blake2b(recipe.encode(), digest_size=16).hexdigest()

    def path(self, corruption: str) -> Path:
        """The file that holds a corruption; its name changes whenever its content would."""
        folder = cache_dir() / "corrupted" / f"{self.name}-{self.digest[:12]}" / version_of(corruption)
        return folder / f"{corruption}-severity{self.severity}-seed{self.seed}.npy"

    def _fill(self, corruption: str, target: Images) -> None:
        count, height, width, _ = self.shape
        step = max(1, READ_PIXELS // (height * width))
        clean = self.open_clean()
        with progress(f"Making {self.name} {corruption}, severity {self.severity}", count) as advance:
            for start in range(0, count, step):
                target[start : start + step] = corrupt(
                    clean[start : start + step],
                    corruption,
                    self.severity,
                    scale=self.scale,
                    seed=self.seed,
                    first_index=start,
                    progress=advance,
                )


# Digests of code -> the version whose pictures it makes, byte for byte (a test compares them). Code that is not listed
# has its own version: its pictures are made again, and results on the old ones do not count.
_SAME_PICTURES = {"368f736eb0fa": "305fabe75da9"}


@lru_cache(maxsize=1)
def generator_version() -> str:
    """A short digest of the code and pictures that make corruptions: other code, other cache."""
    digest = hashlib.sha256()
    for folder in (files("grotta.data") / "corruptions", files("grotta.data") / "assets" / "frost"):
        for file in _walk(folder):
            digest.update(file.name.encode() + file.read_bytes())
    found = digest.hexdigest()[:12]
    return _SAME_PICTURES.get(found, found)


@lru_cache(maxsize=256)
def version_of(corruption: str) -> str:
    """The version of one corruption: the generator's, with a digest of the file that defines one of another package."""
    if corruption in BENCHMARK_DOMAINS:
        return generator_version()
    file = inspect.getsourcefile(find_corruption(corruption).apply)
    content = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return f"{generator_version()}-{hashlib.sha256(content).hexdigest()[:12]}"


def _walk(folder: Traversable) -> list[Traversable]:
    found = sorted(folder.iterdir(), key=lambda item: item.name)
    return [item for item in found if item.is_file() and item.name != "LICENSE" and not item.name.endswith(".md")]
