"""Errors in words for users."""

from pathlib import Path

from safetensors import SafetensorError

_WORDED = (ValueError, TypeError, OSError, FloatingPointError)


def one_line(error: BaseException, place: Path | None = None) -> str:
    """An error as one line; a system error that names no file is said to concern ``place``.

    Errors worded for users are kept as they are; an unexpected one starts with the name of its class.

    >>> one_line(ValueError("gamma must be positive,\\ngot 0"))
    'gamma must be positive, got 0'
    >>> one_line(OSError(28, "No space left on device"), Path("runs/cells/ab"))
    'No space left on device: runs/cells/ab'
    >>> one_line(KeyError("fc"))
    "KeyError: 'fc'"
    """
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text, place = error.strerror, error.filename or place
    elif not isinstance(error, SafetensorError):  # it writes files, but does not say which
        place = None
    worded = isinstance(error, _WORDED) or type(error).__module__.startswith("grotta.")
    name = "" if worded and text else type(error).__name__
    return ": ".join(str(part) for part in (name, text, place) if part)
