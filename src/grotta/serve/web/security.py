"""Who may do what: the token, and browsers that other sites send here."""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from grotta.serve.errors import Refused
from grotta.serve.settings import Settings, is_loopback

OPEN_PATHS = ("/", "/v2/health/live", "/v2/health/ready")  # the page itself holds nothing; its data needs the token
OPEN_PREFIX = "/assets/"


def check_access(settings: Settings, path: str, headers: Mapping[str, str]) -> None:
    """Raise unless the request may come through.

    With a token, everything but the health checks and the empty page needs it. Without one, a server on loopback only
    listens to requests that name it by a loopback address, so that no site can reach it through a visitor's browser.
    """
    check_origin(headers)
    if settings.token:
        if path not in OPEN_PATHS and not path.startswith(OPEN_PREFIX):
            check_token(settings.token, headers.get("authorization", ""))
    elif settings.on_loopback and not is_loopback(_host(headers.get("host", ""))):
        raise Refused(421, "this server answers to loopback addresses only: set a token to use other names")


def check_token(token: str, given: str) -> None:
    """Raise unless ``Authorization`` carries the token; takes as long for a wrong one as for the right one."""
    expected = f"Bearer {token}".encode()
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected):
        raise Refused(401, "a valid bearer token is needed", {"WWW-Authenticate": "Bearer"})


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise if a browser says that the request was made by a page from elsewhere."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise Refused(403, f"requests from pages of {origin[:80]} are not accepted")


def check_may_manage(settings: Settings) -> None:
    """Raise where streams could be changed by anyone in the network."""
    if not settings.token and not settings.on_loopback:
        raise Refused(403, "streams are managed with a token only, where the server listens beyond loopback: set one")


def _host(header: str) -> str:
    return urlsplit(f"//{header}").hostname or ""
