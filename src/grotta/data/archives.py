"""Unpack an archive completely or not at all, and never outside the folder it is meant for."""

import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path

from grotta.data.arrays import require_space
from grotta.data.errors import DamagedDataError


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip file into ``folder``; what is in there of the same name is replaced.

    Raises:
        DamagedDataError: if it is damaged, cut short, or points outside the folder; then nothing of it stays.
    """
    staging = folder / f".{archive.name}.unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, staging)
        else:
            _untar(archive, staging)
        move_into(staging, folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
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
