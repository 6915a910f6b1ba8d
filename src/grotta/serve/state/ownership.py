"""Who may serve a stream: the one process that holds the state folder, or the server that holds the stream's lease."""

import contextlib
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from grotta import _files
from grotta.serve.errors import later
from grotta.serve.settings import Settings
from grotta.serve.state.membership import Membership
from grotta.serve.state.store import OwnedElsewhere, StreamStore

_JOINING = 2.0  # seconds that servers which start at the same time have for joining one after the other
_LEFT_ALONE = 1.0  # seconds for which a server that does not answer is not asked again


class Ownership:
    """The state folder, held alone or shared with other servers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._held = contextlib.ExitStack()
        self._taken = False
        self._unreachable: dict[str, float] = {}  # when a server did not answer
        self.membership: Membership | None = None
        if settings.shared:
            address = settings.advertise or f"http://{settings.host}:{settings.port}"
            self.membership = Membership(settings.state, settings.lease_seconds, address)
        server, alive = (self.membership.id, self.membership.is_alive) if self.membership else ("", None)
        self.store = StreamStore(settings.state, server, alive)

    @property
    def server(self) -> str:
        """This server's name among those that share the folder; empty if none do."""
        return self.store.server

    @property
    def lapses(self) -> int:
        """How often this server lost its lease: streams must then be checked before they are used."""
        return self.membership.lapses if self.membership else 0

    def take(self) -> None:
        """Lock the folder, or join those who share it; nothing if that is done.

        Raises:
            BusyError: another process holds it.
        """
        if self._taken:
            return
        folder = self._settings.state
        _files.require_writable(folder, "state")
        if self.membership is None:
            self._held.enter_context(_files.locked(folder, wait=False))
            sharing = [file.stem for file in (folder / "servers").glob("*.json")]
            if sharing:
                self._held.close()
                raise _files.BusyError(
                    f"{folder} is shared by server {sharing[0]}: stop it, or start this one with --shared"
                )
            self._taken = True
            return
        _join(folder, self.membership)
        self._held.callback(self.membership.leave)
        self._taken = True

    def give_up(self) -> None:
        """Unlock the folder, or leave those who share it."""
        self._held.close()
        self._taken = False

    def check(self) -> None:
        """Refuse to serve while another server may have taken this one for dead."""
        if self.membership is not None and not self.membership.holds():
            raise later("this server has lost its lease on the state folder")

    def claim(self, model: str, name: str) -> int:
        """Own the stream, asking its present owner for it if there is one; returns the epoch.

        Raises:
            OwnedElsewhere: a server that is not known to be dead has not given the stream up.
        """
        try:
            return self.store.claim(model, name)
        except OwnedElsewhere as error:
            if not self._ask(error.server, model, name):
                raise
        return self.store.claim(model, name)

    def is_gone(self, server: str) -> bool:
        """Whether what ``server`` owned is free."""
        return self.membership is None or not self.membership.is_alive(server)

    def _ask(self, server: str, model: str, name: str) -> bool:
        """Ask the server that owns a stream to save it and let it go; False if it does not.

        One that could not be reached is left alone for a while: it is likely dead, and a hundred streams may want it.
        """
        assert self.membership is not None
        silent = time.monotonic() - self._unreachable.get(server, -float("inf")) < _LEFT_ALONE
        if silent or not (address := self.membership.address(server)):
            return False
        query = urllib.parse.urlencode({"name": name})
        url = f"{address}/v2/models/{model}/stream/release?{query}"
        headers = {"Authorization": f"Bearer {self._settings.token}"} if self._settings.token else {}
        request = urllib.request.Request(url, method="POST", headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=self._settings.lease_seconds):
                return True
        except urllib.error.HTTPError:
            return False
        except OSError:
            self._unreachable[server] = time.monotonic()
            return False


def _join(folder: Path, membership: Membership) -> None:
    """Join those who share ``folder``, unless one process holds it alone."""
    deadline = time.monotonic() + _JOINING
    while True:
        try:
            with _files.locked(folder, wait=False):
                membership.join()
            return
        except _files.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
