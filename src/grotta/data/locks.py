"""One writer at a time, across processes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock named after ``path`` (a ``.lock`` file beside it); freed even if the process is killed.

    Where there are no such locks (Windows, some network file systems) it does nothing: every writer here also works on
    a temporary file of its own and renames it, so the lock saves double work but is not what keeps files whole.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f".{path.name}.lock").open("ab")
    except OSError as error:
        raise OSError(f"{path.parent} cannot be written to ({error.strerror}); another cache: GROTTA_CACHE") from error
    with file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
