"""Names of streams and models, and the file names that stand for them."""

import hashlib
import re
import unicodedata

from grotta.serve.errors import bad

DEFAULT_STREAM = "default"
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def stream_name(value: object, longest: int = 128) -> str | None:
    """The stream that a ``sequence_id`` names: a whole number from 1 to 2**64 - 1 or a string; 0 and "" name none.

    A number and the same number in digits are one stream.

    >>> stream_name(7), stream_name("gate/north"), stream_name(0), stream_name("")
    ('7', 'gate/north', None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise bad(f"sequence_id must be a whole number or a string, got {_short(value)}")
    if isinstance(value, int):
        if not 0 <= value < 2**64:
            raise bad(f"sequence_id must be in [0, 2**64), got {_short(value)}")
        return str(value) if value else None
    if len(value) > longest:
        raise bad(f"a stream's name must have at most {longest} characters, got {len(value)}")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in value):
        raise bad(f"a stream's name must consist of printable characters, got {_short(value)}")
    return value or None


def check_model_name(name: str) -> str:
    """A model's name: letters, digits, dot, dash and underscore, as it becomes part of addresses and paths.

    >>> check_model_name("../secrets")
    Traceback (most recent call last):
    ValueError: a model's name must be letters, digits, '.', '_' or '-', at most 64, got '../secrets'
    """
    if not _MODEL.fullmatch(name):
        raise ValueError(f"a model's name must be letters, digits, '.', '_' or '-', at most 64, got {name!r}")
    return name


def file_key(name: str) -> str:
    """A folder name for the stream ``name``: the same everywhere, safe on every file system, no way out of the folder.

    >>> file_key("../../etc/passwd").isalnum(), len(file_key("7"))
    (True, 32)
    """
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
