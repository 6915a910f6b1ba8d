"""A running camera, kept as a folder of pictures while it runs: what ``recorded`` streams are read from."""

import datetime
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from grotta._files import replacing
from grotta.data.video import pictures

QUALITY = 95  # of the JPEG files


def record(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    images: int = 0,
    advance: Callable[[int], None] = lambda count: None,
) -> int:
    """Write the frames of a video or a camera into ``folder`` as they come; gives how many there were.

    A file is called after the time at which its frame was taken, so that ``folder:`` has them in order and with their
    times. Each is whole or absent: stopped at any moment, what has been filmed is there.

    Args:
        source: as for :func:`grotta.data.video.frames`.
        folder: where the pictures go; made if it does not exist.
        images: stop after so many; 0 means when the source ends.
        advance: called with 1 for every picture.
    """
    target, count, began, first = Path(folder), 0, datetime.datetime.now(), 0.0
    for seconds, picture in pictures(source):
        if not count:
            began, first = datetime.datetime.now(), seconds
        moment = began + datetime.timedelta(seconds=seconds - first)  # never backwards, whatever the clock does
        with replacing(target / f"{moment:%Y-%m-%d_%H_%M_%S}_{count:06d}.jpg", bulk=True) as file:
            picture.save(file, "JPEG", quality=QUALITY)
        count += 1
        advance(1)
        if count == images:
            break
    return count


def camera_name(source: str) -> str:
    """A name for the camera behind a path or an address, without passwords.

    >>> camera_name("rtsp://me:secret@10.0.0.3:554/gate"), camera_name("tcp://10.0.0.3:99"), camera_name("/dev/video0")
    ('gate', '10.0.0.3', 'video0')
    """
    address = urlsplit(source)
    name = Path(address.path).stem or address.hostname or "camera"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "camera"
