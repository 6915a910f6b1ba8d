"""Unpack an archive completely or not at all, and never outside the folder it is meant for."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from grotta._files import require_space
from grotta.data.errors import DamagedDataError


def unpack(archive: Path, folder: Path, check: Callable[[Path], None] | None = None) -> list[str]:
    """Unpack a tar or zip file into ``folder``; existing files of the same name are replaced.

    ``check`` is given the unpacked files before they are moved there, and may refuse them with an error.

    Returns:
        What is on the two uppermost levels of the archive, relative to ``folder``.

    Raises:
        DamagedDataError: if it is damaged, cut short, encrypted, or points outside the folder; nothing is left behind.
    """
    staging = folder / f".{archive.name}.unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, staging)
        else:
            _untar(archive, staging)
        if check is not None:
            check(staging)
        names = [path.relative_to(staging).as_posix() for level in ("*", "*/*") for path in staging.glob(level)]
        move_into(staging, folder)
        return sorted(names)
    # zipfile raises a RuntimeError for files that are encrypted or compressed in an unknown way.
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
        raise DamagedDataError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def move_into(source: Path, target: Path) -> None:
    """Move everything in the folder ``source`` into the folder ``target``, merging folders and replacing files."""
    target.mkdir(parents=True, exist_ok=True)
    for item in list(source.iterdir()):
        destination = target / item.name
        if item.is_dir() and destination.is_dir():
            move_into(item, destination)
        else:
            item.replace(destination)


def _untar(archive: Path, staging: Path) -> None:
    require_space(staging, archive.stat().st_size, f"unpacking {archive.name}")
    with tarfile.open(archive) as tar:
        tar.extractall(staging, filter="data")


def _unzip(archive: Path, staging: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            if not (staging / name).resolve().is_relative_to(staging.resolve()):
                raise zipfile.BadZipFile(f"{name} points outside the archive")
        require_space(staging, sum(item.file_size for item in file.infolist()), f"unpacking {archive.name}")
        file.extractall(staging)
