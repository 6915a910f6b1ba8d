"""Which servers share a state folder, and which of them are alive."""

import contextlib
import json
import secrets
import threading
import time
from pathlib import Path

from grotta import _files


class Membership:
    """One file for every server, rewritten with a growing count: a server whose count stands still is dead.

    Nobody's clock is compared with anybody else's. A server is taken for dead when another has watched its count stand
    still for ``lease`` seconds; it stops serving by itself (:meth:`holds`) when it has not managed to raise its count
    for three quarters of that, so it always stops first.
    """

    def __init__(self, folder: Path, lease: float, address: str = "") -> None:
        self.id = secrets.token_hex(6)
        self.lease = lease
        self.lapses = 0  # times that the lease ran out: whatever was owned before must be checked
        self._folder = folder / "servers"
        self._address = address
        self._count = 0
        self._renewed = -float("inf")
        self._seen: dict[str, tuple[int, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, name="membership", daemon=True)

    @property
    def file(self) -> Path:
        """This server's own file."""
        return self._folder / f"{self.id}.json"

    def join(self) -> None:
        """Appear, and keep the count growing in the background."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _files.remove_leftovers(self._folder)
        self._beat()
        self._thread.start()

    def leave(self) -> None:
        """Disappear: everything owned is free at once."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.file.unlink(missing_ok=True)

    def holds(self) -> bool:
        """Whether no other server can have taken this one for dead."""
        return time.monotonic() - self._renewed < 0.75 * self.lease

    def is_alive(self, server: str) -> bool:
        """Whether ``server`` has not been seen to stand still for the length of a lease."""
        if server == self.id:
            return True
        self._look(server)
        seen = self._seen.get(server)
        return seen is not None and time.monotonic() - seen[1] < self.lease

    def address(self, server: str) -> str:
        """Where ``server`` is reached, empty if it is not known."""
        return str(_parse(self._folder / f"{server}.json").get("address", ""))

    def _keep_up(self) -> None:
        while not self._stop.wait(self.lease / 5):
            with contextlib.suppress(OSError):  # an unreachable folder ends the lease, not the thread
                self._beat()
                for file in self._folder.glob("*.json"):
                    if not self.is_alive(file.stem):
                        file.unlink(missing_ok=True)

    def _beat(self) -> None:
        began = time.monotonic()
        self._count += 1
        values = {"count": self._count, "address": self._address}
        _files.write(self.file, json.dumps(values).encode(), bulk=True)
        if self._count > 1 and began - self._renewed >= 0.75 * self.lease:
            self.lapses += 1
        self._renewed = began

    def _look(self, server: str) -> None:
        count = _parse(self._folder / f"{server}.json").get("count")
        if not isinstance(count, int):
            self._seen.pop(server, None)
        elif server not in self._seen or self._seen[server][0] != count:
            self._seen[server] = (count, time.monotonic())


def _parse(file: Path) -> dict[str, object]:
    try:
        values = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
