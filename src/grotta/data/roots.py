"""Where data is looked for: an explicit root, then ``GROTTA_DATA``, then the user's cache."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """The folder for what grotta downloads or makes: ``GROTTA_CACHE``, or ``~/.cache/grotta``."""
    return Path(os.environ.get("GROTTA_CACHE") or "~/.cache/grotta").expanduser()


def download_dir() -> Path:
    """The data root inside the cache, where downloads go."""
    return cache_dir() / "data"


def data_roots(root: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """The folders to search, first match wins.

    ``GROTTA_DATA`` may hold several folders, separated as in ``PATH``. An explicit ``root`` that is not a folder is
    an error, since falling through to other data would hide a slip of the pen.

    >>> data_roots()[-1] == download_dir()
    True
    """
    if root is not None and not Path(root).expanduser().is_dir():
        raise ValueError(f"root: {os.fspath(root)!r} is not a folder")
    named = [os.fspath(root)] if root is not None else []
    named += [part for part in os.environ.get("GROTTA_DATA", "").split(os.pathsep) if part]
    return (*(Path(part).expanduser() for part in named), download_dir())
