"""Get a data set: download its files, check them, and put them where the readers look."""

from collections.abc import Sequence
from pathlib import Path

from grotta import _files
from grotta.data.archives import unpack
from grotta.data.download import Remote, download
from grotta.data.errors import DataNotFoundError


def fetch_files(remotes: Sequence[Remote], folder: str, root: Path) -> None:
    """Download files into ``root/folder`` and keep them as they are."""
    for remote in remotes:
        download(remote, root / folder)


def fetch_archives(remotes: Sequence[Remote], folder: str, root: Path, *, nested: bool = False) -> None:
    """Download archives, unpack each into ``root/folder``, and remove it; those already unpacked are skipped.

    ``nested`` says that ``folder`` is in the archives themselves.
    """
    target = root / folder
    place = root if nested else target
    with _files.locked(target):
        missing = [remote for remote in remotes if not _is_unpacked(_marker(target, remote), place)]
        if missing:
            # Each archive is removed once it is unpacked, so there is only one at a time beside its content.
            needed = sum(remote.size for remote in missing) + max(remote.size for remote in missing)
            here = sum(_size_on_disk(root, remote) for remote in missing)
            names = ", ".join(remote.filename for remote in missing)
            _files.require_space(root, needed - here, f"downloading and unpacking {names}")
        for remote in missing:
            archive = download(remote, root)
            names = "\n".join(unpack(archive, place))
            _files.write(_marker(target, remote), names.encode())
            archive.unlink()


def _marker(target: Path, remote: Remote) -> Path:
    return target / f".{remote.filename}.unpacked"


def _is_unpacked(marker: Path, place: Path) -> bool:
    """Whether everything listed in the marker of an archive is still there."""
    names = marker.read_text().splitlines() if marker.is_file() else []
    return bool(names) and all((place / name).exists() for name in names)


def _size_on_disk(root: Path, remote: Remote) -> int:
    paths = (root / remote.filename, root / f"{remote.filename}.part")
    return sum(path.stat().st_size for path in paths if path.is_file())


def fetch_by_hand(steps: str, root: Path) -> None:
    """Raise an error that explains what to do; ``steps`` has a placeholder for the root."""
    raise DataNotFoundError(steps.format(root=root))
