"""Video files and running cameras, frame by frame. Needs the extra ``video`` (PyAV)."""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from grotta.data.arrays import Images, cached_images
from grotta.data.dataset import DomainDataset, Moments, same_labels
from grotta.data.decode import resize_and_crop, short_side
from grotta.data.errors import DamagedDataError, DataNotFoundError
from grotta.data.options import Options
from grotta.data.progress import progress
from grotta.data.recording import UNKNOWN
from grotta.data.roots import cache_dir


def frames(source: str | os.PathLike[str], *, image_size: int = 224) -> Iterator[tuple[float, Images]]:
    """The frames of a video file, or of a camera while it runs, as (seconds since the start, uint8 (size, size, 3)).

    ``source`` is whatever FFmpeg opens: a file, a pipe, an address such as ``rtsp://camera/stream``, or a device such
    as ``/dev/video0``. Each frame is resized and cropped as pictures from files are. A camera never ends on its own.

    >>> for seconds, frame in frames("gate.mp4"):  # doctest: +SKIP
    ...     adapter(torch.from_numpy(frame).permute(2, 0, 1)[None])
    """
    for seconds, picture in pictures(source):
        yield seconds, np.asarray(resize_and_crop(picture, short_side(image_size), image_size))


def pictures(source: str | os.PathLike[str]) -> Iterator[tuple[float, Image.Image]]:
    """The frames of :func:`frames` in their own size, as (seconds, RGB picture)."""
    decoder, path = _decoder(), Path(source)
    device = sys.platform == "linux" and path.is_char_device()  # FFmpeg does not recognise a device by its name
    try:
        with decoder.open(os.fspath(source), format="v4l2" if device else None) as container:
            if not container.streams.video:
                raise DamagedDataError(f"{source} has no video")
            for number, frame in enumerate(container.decode(video=0)):
                yield float(number if frame.time is None else frame.time), frame.to_image()
    except FileNotFoundError as error:
        raise DataNotFoundError(f"{source}: there is no such video") from error
    except decoder.FFmpegError as error:
        raise DamagedDataError(f"{source} cannot be read as a video: {error}") from error


def open_video(name: str, path: str, options: Options) -> DomainDataset:
    """A video file as a recording of one camera without labels, named after the file; decoded once, into the cache."""
    if is_running(path):
        raise ValueError(f"dataset must be a video that has an end, got {path}; `grotta data record` films a camera")
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataNotFoundError(f"{path}: there is no such video")
    size, domain = options.image_size, file.stem
    times = np.array([seconds for seconds, _ in frames(file, image_size=1)])
    if not len(times):
        raise DamagedDataError(f"{path} has no frames")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()

    def fill(target: Images) -> None:
        with progress(f"Decoding {file.name}", len(times), unit="frames") as advance:
            for place, (_, frame) in zip(target, frames(file, image_size=size), strict=True):
                place[...] = frame
                advance(1)

    def images(domain: str) -> Images:
        return cached_images(cache_dir() / "decoded" / f"{digest[:20]}-{size}.npy", (len(times), size, size, 3), fill)

    return DomainDataset(
        name=name,
        domains=options.choose([domain]),
        class_names=(),
        image_shape=(3, size, size),
        provenance="original",
        open_images=images,
        open_labels=lambda domain: same_labels(np.full(len(times), UNKNOWN, dtype=np.int64), domain),
        identify=lambda domain: f"{digest[:32]} {size}",
        moments={domain: Moments(np.round(times).astype("datetime64[s]"), (domain,) * len(times))},
        closed=False,
    )


def is_running(source: str) -> bool:
    """Whether frames of a source come only once, as it sends them: an address, a device or a pipe, not a file.

    >>> is_running("rtsp://camera/gate"), is_running("gate.mp4")
    (True, False)
    """
    path = Path(source).expanduser()
    return "://" in source or path.is_char_device() or path.is_fifo()


def _decoder() -> Any:
    try:
        import av
    except ImportError as error:
        raise DataNotFoundError("videos need PyAV: pip install 'grotta[video]'") from error
    return av
