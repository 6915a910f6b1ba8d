"""Files that are complete or absent, locks between processes, and checks before long work.

Everything in grotta that writes a file or waits for another process does it through this module.
"""

import contextlib
import errno
import glob
import hashlib
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Only these mean that a file system has no locks; anything else is an error.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}


class BusyError(RuntimeError):
    """Another process holds the lock."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, bulk: bool = False) -> Iterator[Path]:
    """Yield a temporary file to write; at the end of the block it becomes ``path`` in one step.

    A failure, a kill or a power cut leaves the old file or the new one, never a part of it: the content is on the disk
    before the name is. Folders are made, a link stays a link, and the mode follows the umask, whatever the writer
    chose. The temporary file is removed on failure; those of killed processes are removed by the next write of
    ``path``.

    Args:
        path: the file to make or replace.
        bulk: for one of very many files that can be remade: do not wait for the disk or look for leftovers.

    Raises:
        OSError: naming ``path``, not the temporary file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'all of it')]
    """
    target = Path(path).resolve()
    temporary = temporary_name(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not bulk:
            remove_leftovers(target.parent, target.name)
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)
        if not bulk:
            _flush(temporary)
        temporary.replace(target)
        if not bulk:
            _flush(target.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], content: bytes, *, bulk: bool = False) -> None:
    """Write ``content`` to ``path``, completely or not at all; see :func:`replacing`."""
    with replacing(path, bulk=bulk) as temporary:
        temporary.write_bytes(content)


def temporary_name(target: Path) -> Path:
    """A new name beside ``target`` for an unfinished file; :func:`remove_leftovers` can tell whose it was."""
    return target.with_name(f".{target.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part")


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Delete the temporary files of ``name`` (or of all) that killed processes of this machine left in ``folder``."""
    start = f".{glob.escape(name)}" if name else ".*"
    for leftover in folder.glob(f"{start}.{_host()}-*-*.part"):
        process = leftover.name.split("-")[-2]
        if process.isdigit() and not _is_alive(int(process)):
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold ``path`` for this process alone: a folder by ``.lock`` in it, a file by ``.NAME.lock`` beside it.

    The system releases the lock when the process ends, however it ends; the lock file stays. On a file system without
    locks (some network ones) nothing is held: writers may then do the same work twice, but :func:`replacing` still
    keeps every file complete.

    Raises:
        BusyError: another process holds it and ``wait`` is false.
        OSError: the lock file cannot be made.
    """
    from filelock import FileLock, Timeout

    if path.is_dir():
        file = path / ".lock"
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f".{path.name}.lock")
    lock = FileLock(file, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout as error:
        raise BusyError(f"another process is using {path}") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield
    finally:
        lock.release()


def require_writable(folder: Path, argument: str = "out") -> None:
    """Make ``folder`` and try to write a file in it: better to fail now than after hours of work.

    >>> require_writable(Path(__file__))
    Traceback (most recent call last):
    OSError: out must be a folder that can be written to, got '...' (it is a file)
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror
        message = f"{argument} must be a folder that can be written to, got {str(folder)!r} ({reason})"
        raise OSError(message) from error


def require_space(folder: Path, needed: int, purpose: str) -> None:
    """Make ``folder``; an ``OSError`` before the work begins if it has less than ``needed`` bytes free."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needed:
        message = f"{purpose} needs {needed / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are free"
        raise OSError(errno.ENOSPC, message)


def _flush(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    if path.is_dir() and os.name == "nt":
        return  # folders cannot be opened on Windows
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _host() -> str:
    """A short name for this machine: others may share the folder, and their processes cannot be checked."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there is no harmless signal on Windows
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
