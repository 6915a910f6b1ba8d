"""One process at a time for a cell."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


class CellBusyError(RuntimeError):
    """Another process is running the cell."""


@contextlib.contextmanager
def cell_lock(directory: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the cell in ``directory``; the system lets go of it when the process ends, however it ends.

    Where there are no such locks (Windows, some network file systems) nothing is held. Then two runs may do the same
    work twice; they do not hurt each other, since both write the same bytes, each file at once or not at all.

    Raises:
        CellBusyError: another process holds it and ``wait`` is false.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise CellBusyError(f"another process is running the cell in {directory}") from error
        except (ImportError, OSError):
            pass
        yield
