"""What can go wrong with data on a disk or on the way to it."""

from collections.abc import Sequence
from pathlib import Path


class DataNotFoundError(FileNotFoundError):
    """A data set was not found; the message says where it was looked for and how to get it."""


class DamagedDataError(OSError):
    """A file exists but is not what it should be: truncated, of another shape, or with other content."""


class DownloadError(OSError):
    """A download failed; the message says of what, why, and whether the next attempt resumes it."""


def not_found(name: str, roots: Sequence[Path], looked_for: str, get: str) -> DataNotFoundError:
    """The error for a data set that no root has; ``get`` is the name to get it by."""
    places = ", ".join(str(root) for root in roots)
    return DataNotFoundError(
        f"{name} is in none of the data roots {places} (looked for {looked_for}); "
        f"to get it: grotta data get {get}; to use a copy of yours: --data-root or GROTTA_DATA"
    )
