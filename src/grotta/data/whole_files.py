"""Files that are there whole or not at all."""

import os
import threading
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, which is only seen once everything is in it; folders are made.

    Raises:
        OSError: naming ``path``, if it cannot be written, as on a full disk; then what was there before stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
