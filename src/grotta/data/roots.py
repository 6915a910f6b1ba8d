"""Where data is looked for: an explicit root, then ``GROTTA_DATA``, then the user's cache."""

import contextlib
import os
from collections.abc import Iterator
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
    an error: falling back to other data would hide a typo.

    >>> data_roots()[-1] == download_dir()
    True
    """
    return tuple(path for path, _ in _named_roots(root))


@contextlib.contextmanager
def naming_the_root(root: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Let a system error about a path in a data root say which root that is, and where it was set."""
    roots = _named_roots(root)
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str):  # one of ours, which says what it is about
            raise
        path = Path(error.filename)
        for folder, origin in roots:
            if path.is_relative_to(folder):
                where = f"the data root {folder}" if path == folder else f"{path} in the data root {folder}"
                raise type(error)(f"{where} (from {origin}) cannot be used: {error.strerror}") from error
        raise


def _named_roots(root: str | os.PathLike[str] | None) -> list[tuple[Path, str]]:
    """The data roots, each with where it was set."""
    explicit = [] if root is None else [(_folder(root), "root or --data-root")]
    parts = [part for part in os.environ.get("GROTTA_DATA", "").split(os.pathsep) if part]
    return [
        *explicit,
        *((Path(part).expanduser(), "GROTTA_DATA") for part in parts),
        (download_dir(), "the cache, which GROTTA_CACHE names"),
    ]


def _folder(root: str | os.PathLike[str]) -> Path:
    path = Path(root).expanduser()
    try:
        problem = "" if path.is_dir() else "is not one"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem:
        raise ValueError(f"root must be a folder, got {os.fspath(root)!r}, which {problem}")
    return path
