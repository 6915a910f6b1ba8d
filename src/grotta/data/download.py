"""Downloads that resume where they stopped, and are kept only if they match their published checksum."""

import errno
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grotta._files import locked, require_space
from grotta._version import __version__
from grotta.data.errors import DownloadError
from grotta.data.progress import progress

TIMEOUT_SECONDS = 30
BLOCK = 1 << 20


@dataclass(frozen=True)
class Remote:
    """A file to download, and the checksum published for it."""

    url: str  # its official address
    algorithm: Literal["md5", "sha256"]  # of the checksum
    checksum: str  # in hexadecimal
    size: int  # in bytes, roughly; only used to check for free space

    @property
    def filename(self) -> str:
        """The last part of the address.

        >>> Remote("https://example.org/a/b.tar", "md5", "", 0).filename
        'b.tar'
        """
        return self.url.rpartition("/")[2]


def download(remote: Remote, folder: Path) -> Path:
    """Download ``remote`` into ``folder`` unless it exists already, and return its path.

    Bytes are collected in a ``.part`` file. A cut connection leaves it behind and the next call resumes it; a
    file that turns out not to be the published one is removed, and the next call starts over.

    Raises:
        DownloadError: with the address and the reason.
        OSError: if there is not enough room on the disk.
    """
    target = folder / remote.filename
    part = target.with_name(f"{target.name}.part")
    with locked(target):
        if target.is_file() and _wrong(target, remote) is None:
            return target
        resumed = part.exists()
        _fill(part, remote)
        wrong = _wrong(part, remote)
        if wrong and resumed:  # the part from before may be wrong
            part.unlink()
            _fill(part, remote)
            wrong = _wrong(part, remote)
        if wrong:
            part.unlink()
            raise DownloadError(f"{remote.url} is not the published file: {wrong}; it was not kept")
        part.replace(target)
    return target


def _wrong(path: Path, remote: Remote) -> str | None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, remote.algorithm).hexdigest()
    if found == remote.checksum:
        return None
    return f"its {remote.algorithm} is {found}, not {remote.checksum}"


def _fill(part: Path, remote: Remote) -> None:
    """Fetch the rest of ``part``; resume after a cut as long as each attempt makes progress."""
    import http.client  # slow to import, and needed only here
    import urllib.error

    while True:
        start = part.stat().st_size if part.exists() else 0
        try:
            return _fetch_rest(part, start, remote)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # nothing is missing; the checksum tells whether it is the right file
            raise DownloadError(f"{remote.url}: the server answers {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, DownloadError) or getattr(error, "errno", None) == errno.ENOSPC:
                raise
            now = part.stat().st_size if part.exists() else 0
            if now <= start:
                kept = f"; {now} bytes are kept, and the next attempt resumes there" if now else ""
                raise DownloadError(f"{remote.url}: {getattr(error, 'reason', error)}{kept}") from error


def _fetch_rest(part: Path, start: int, remote: Remote) -> None:
    import http.client
    import urllib.request

    headers = {"User-Agent": f"grotta/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    request = urllib.request.Request(remote.url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        # A server without ranges sends everything again; what we already have is then skipped.
        position = start if answer.status == http.client.PARTIAL_CONTENT else 0
        end = _end(answer.headers.get("Content-Length"), position, remote)
        total = remote.size if end is None else end
        require_space(part.parent, total - start, f"downloading {remote.filename}")
        block = answer.read(BLOCK)
        if answer.headers.get_content_type() == "text/html" or (position == 0 and _is_web_page(block)):
            raise DownloadError(f"{remote.url} gives a web page, not the file; is a log-in or a proxy in the way?")
        label = f"Downloading {remote.filename}"
        with part.open("ab") as file, progress(label, total, unit="bytes", done=position) as advance:
            while block:
                file.write(block[max(0, start - position) :])
                position += len(block)
                advance(len(block))
                block = answer.read(BLOCK)
    if end is not None and position < end:
        raise ConnectionError(f"the connection was cut after {position} of {end} bytes")


def _end(length: str | None, position: int, remote: Remote) -> int | None:
    """The number of bytes of the whole file, if the server gives the length of its answer."""
    if length is None:
        return None
    if not length.strip().isdecimal():
        raise DownloadError(f"{remote.url}: the server gives {length!r} as Content-Length, which is not a number")
    return position + int(length)


def _is_web_page(beginning: bytes) -> bool:
    return beginning[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))
