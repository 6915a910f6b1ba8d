"""Where streams are kept: one folder each, with the last checkpoint and who may write the next."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from grotta import _files
from grotta.methods.base import Adapter
from grotta.serve.names import file_key

LAYOUT = "v1"


class OwnedElsewhere(RuntimeError):  # noqa: N818 - a state of affairs, not a fault
    """Another living server owns the stream."""

    def __init__(self, server: str) -> None:
        super().__init__(f"the stream is owned by server {server}")
        self.server = server


@dataclass(frozen=True)
class Stored:
    """A stream that is on disk."""

    model: str
    name: str
    ended: bool
    created: float


class StreamStore:
    """Streams in ``folder``: ``v1/MODEL/KEY/`` holds ``stream.json``, ``N.safetensors`` and ``N.owner``.

    N is the *epoch* of a stream: it grows whenever the stream changes hands. An owner writes only files of its own
    epoch, and a reader takes the highest, so what a former owner writes late can never replace what came after it.
    Claims are made by linking a finished file to a name that must not exist: one of several servers wins, on any file
    system that several machines can share.
    """

    def __init__(self, folder: Path, server: str = "", is_alive: Callable[[str], bool] | None = None) -> None:
        self.root = folder / LAYOUT
        self.server = server
        self._is_alive = is_alive  # None: this process owns the whole folder, and streams need no owners

    def folder(self, model: str, name: str) -> Path:
        """The folder of a stream."""
        return self.root / model / file_key(name)

    def claim(self, model: str, name: str) -> int:
        """Become the owner of a stream, and give the epoch in which its checkpoints are written from now on.

        Raises:
            OwnedElsewhere: the owner is another server that is alive.
        """
        folder = self.folder(model, name)
        if self._is_alive is None:
            return max(_epochs(folder, ".safetensors"), default=1)
        while True:
            epoch = max(_epochs(folder, ".owner"), default=0)
            owner = _read(folder / f"{epoch}.owner") if epoch else None
            if owner == self.server:
                return epoch
            if owner and self._is_alive(owner):
                raise OwnedElsewhere(owner)
            following = 1 + max(epoch, *_epochs(folder, ".safetensors"), 0)
            if self._link(folder / f"{following}.owner"):
                _remove_before(folder, ".owner", following)
                return following

    def owns(self, model: str, name: str, epoch: int) -> bool:
        """Whether the stream has not changed hands since ``epoch`` was claimed."""
        if self._is_alive is None:
            return True
        folder = self.folder(model, name)
        return max(_epochs(folder, ".owner"), default=0) == epoch and _read(folder / f"{epoch}.owner") == self.server

    def release(self, model: str, name: str, epoch: int) -> None:
        """Let any server claim the stream."""
        (self.folder(model, name) / f"{epoch}.owner").unlink(missing_ok=True)

    def save(self, model: str, name: str, epoch: int, adapter: Adapter) -> None:
        """Write a checkpoint; a kill at any instant leaves the one before or this one."""
        folder = self.folder(model, name)
        if not (folder / "stream.json").is_file():
            self.describe(model, name, ended=False)
        adapter.save(folder / f"{epoch}.safetensors")
        _remove_before(folder, ".safetensors", epoch)

    def describe(self, model: str, name: str, *, ended: bool) -> None:
        """Write down which stream the folder is of, and whether its sequence has ended."""
        file = self.folder(model, name) / "stream.json"
        known = _parse(_read(file))
        created = known.created if known else time.time()
        values = {"model": model, "name": name, "ended": ended, "created": created}
        _files.write(file, json.dumps(values).encode())

    def checkpoint(self, model: str, name: str) -> Path | None:
        """The last checkpoint of a stream, None if it has none."""
        folder = self.folder(model, name)
        epoch = max(_epochs(folder, ".safetensors"), default=0)
        return folder / f"{epoch}.safetensors" if epoch else None

    def step(self, model: str, name: str) -> int:
        """The step of the last checkpoint of a stream, 0 if it has none that can be read."""
        if (file := self.checkpoint(model, name)) is None:
            return 0
        try:
            with safe_open(file, framework="np") as tensors:
                return int(tensors.get_tensor("step"))
        except (OSError, SafetensorError, ValueError, TypeError):
            return 0

    def find(self, model: str, name: str) -> Stored | None:
        """What is known of a stream, None if nothing."""
        return _parse(_read(self.folder(model, name) / "stream.json"))

    def streams(self, model: str) -> Iterator[Stored]:
        """All streams of a model that are on disk; what killed processes left half-written is removed on the way."""
        for folder in sorted((self.root / model).glob("*/")):
            _files.remove_leftovers(folder)
            if stored := _parse(_read(folder / "stream.json")):
                yield stored

    def delete(self, model: str, name: str) -> None:
        """Forget a stream."""
        shutil.rmtree(self.folder(model, name), ignore_errors=True)

    def size(self) -> int:
        """Bytes of all checkpoints."""
        return sum(_size(file) for file in self.root.glob("*/*/*.safetensors"))

    def _link(self, claim: Path) -> bool:
        claim.parent.mkdir(parents=True, exist_ok=True)
        temporary = _files.temporary_name(claim)
        try:
            temporary.write_text(self.server)
            os.link(temporary, claim)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        return True


def _epochs(folder: Path, suffix: str) -> list[int]:
    return [int(file.stem) for file in folder.glob(f"*{suffix}") if file.stem.isdigit()]


def _remove_before(folder: Path, suffix: str, epoch: int) -> None:
    for older in _epochs(folder, suffix):
        if older < epoch:
            (folder / f"{older}{suffix}").unlink(missing_ok=True)


def _read(file: Path) -> str | None:
    try:
        return file.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _parse(text: str | None) -> Stored | None:
    try:
        values = json.loads(text or "")
        return Stored(values["model"], values["name"], bool(values["ended"]), float(values["created"]))
    except (ValueError, KeyError, TypeError):
        return None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
