"""Pictures in the order in which a camera took them: from the names of files, from their times, or from a CSV file."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grotta.data.dataset import DomainDataset, Moments
from grotta.data.decode import SUFFIXES
from grotta.data.errors import DamagedDataError, DataNotFoundError
from grotta.data.options import Options
from grotta.data.pictures import Listing, picture_dataset

UNKNOWN = -1  # the label of a picture without one
NOT_A_TIME = np.datetime64("NaT", "s")
_COLUMNS = ("path", "label", "time", "domain", "stream")
# A date and a time of day anywhere in a name: 2012-12-12_13_05_08, 20121212T130508, 2012-12-12 13.05.08
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[ T_-]?(\d\d)[-_.:]?(\d\d)[-_.:]?(\d\d)(?!\d)")


@dataclass(frozen=True)
class Frame:
    """A picture of a recording: its path in the folder, its label's name or ``""``, and when and how it was taken."""

    path: str
    label: str = ""
    time: np.datetime64 = NOT_A_TIME
    condition: str = ""
    stream: str = ""


@dataclass(frozen=True)
class Recording:
    """Frames in recorded order, below ``folder``; ``class_names`` is empty where no frame has a label."""

    folder: Path  # what the paths are relative to
    frames: tuple[Frame, ...]  # in the order of each stream; streams may be interleaved
    class_names: tuple[str, ...] = ()  # a label is an index into them
    closed: bool = True  # whether these are all classes there are; not if they are only the numbers that occur

    def streams(self) -> tuple[str, ...]:
        """The names of the streams, in order of their first frame."""
        return tuple(dict.fromkeys(frame.stream for frame in self.frames))

    def select(self, name: str) -> list[Frame]:
        """The frames of a stream, or with ``STREAM:CONDITION+CONDITION`` those taken in some conditions."""
        stream, _, wanted = (name, "", "") if name in self.streams() else name.rpartition(":")
        conditions = set(wanted.split("+")) if wanted else set()
        return [
            frame
            for frame in self.frames
            if frame.stream == stream and (not conditions or frame.condition in conditions)
        ]


def open_recording(name: str, read: Callable[[], Recording], options: Options) -> DomainDataset:
    """A recording as a data set whose domains are its streams, each in recorded order."""
    recording = read()
    domains = options.domains or recording.streams()
    chosen = {domain: recording.select(domain) for domain in domains}
    empty = [domain for domain, frames in chosen.items() if not frames]
    if empty or len(chosen) < len(domains):
        known = ", ".join(recording.streams())
        raise ValueError(f"domains must be different streams of {known} (or STREAM:CONDITION); got {list(domains)}")
    place = {label: index for index, label in enumerate(recording.class_names)}
    listings, moments = {}, {}
    for domain, frames in chosen.items():
        labels = np.array([place.get(frame.label, UNKNOWN) for frame in frames], dtype=np.int64)
        listings[domain] = Listing(recording.folder, tuple(frame.path for frame in frames), labels)
        times = np.array([frame.time for frame in frames], dtype="datetime64[s]")
        moments[domain] = Moments(times, tuple(frame.condition for frame in frames))
    return picture_dataset(
        options,
        name=name,
        domains=tuple(chosen),
        class_names=recording.class_names,
        provenance="original",
        list_domain=listings.__getitem__,
        moments=moments,
        closed=recording.closed,
    )


def read_folder(path: str, *, by_time: bool) -> Recording:
    """The pictures below a folder in the order of their names, or of the times at which the files were written.

    ``<stream>/<class>/.../<picture>`` has labels; ``<stream>/<picture>`` and ``<picture>`` have none. Numbers in names
    count as numbers, and a date and time in a name is the time of the picture.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise DataNotFoundError(f"{path}: there is no such folder")
    found = sorted(
        (file.relative_to(folder) for file in folder.rglob("*") if _is_picture(file.relative_to(folder))),
        key=lambda file: (natural(file.name), file.as_posix()),
    )
    depths = {min(len(file.parts), 3) for file in found}
    if len(depths) != 1:
        layouts = "<picture>, <stream>/<picture> or <stream>/<class>/<picture>"
        raise DataNotFoundError(f"{path} must hold pictures as {layouts}, found {'a mixture' if found else 'none'}")
    frames = [_frame_of(folder, file, by_time) for file in found]
    if by_time:
        frames.sort(key=lambda frame: frame.time)
    classes = tuple(sorted({frame.label for frame in frames} - {""}))
    return Recording(folder, tuple(sorted(frames, key=lambda frame: frame.stream)), classes, closed=bool(classes))


def read_csv(path: str) -> Recording:
    """The pictures of a CSV file in the order of its rows.

    It has the column ``path``, relative to its own folder, and may have ``label``, ``time`` (ISO 8601, or seconds),
    ``domain`` (weather, place, or anything else that changes) and ``stream`` (the camera). Within a stream times must
    not go backwards.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataNotFoundError(f"{path}: there is no such file")
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text)
            columns = [name for name in _COLUMNS if name in (rows.fieldnames or [])]
            if "path" not in columns:
                raise DamagedDataError(f"{path} must have a column 'path', found {rows.fieldnames}")
            frames = [_frame_of_row(path, number, row) for number, row in enumerate(rows, start=2)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DamagedDataError(f"{path} is not a CSV file: {error}") from error
    if not frames:
        raise DamagedDataError(f"{path} has no rows")
    _check_files(path, file.parent, frames)
    _check_times(path, frames)
    labels = {frame.label for frame in frames} - {""}
    numbers = bool(labels) and all(label.isdecimal() for label in labels)
    classes = map(str, range(max(map(int, labels)) + 1)) if numbers else sorted(labels)
    return Recording(file.parent, tuple(frames), tuple(classes), closed=bool(labels) and not numbers)


def time_in(name: str) -> np.datetime64:
    """The date and time of day in the name of a file, or not-a-time.

    >>> time_in("2012-12-12_13_05_08_000.jpg"), time_in("frame_17.jpg")
    (np.datetime64('2012-12-12T13:05:08'), np.datetime64('NaT','s'))
    """
    found = _STAMP.search(name)
    try:
        return np.datetime64("{}-{}-{}T{}:{}:{}".format(*found.groups()), "s") if found else NOT_A_TIME
    except ValueError:  # digits that only look like a date
        return NOT_A_TIME


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts names with their numbers as numbers.

    >>> sorted(["b10", "b9", "a"], key=natural)
    ['a', 'b9', 'b10']
    """
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part]


def _is_picture(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in file.parts)


def _frame_of(folder: Path, file: Path, by_time: bool) -> Frame:
    written = np.datetime64(int((folder / file).stat().st_mtime_ns), "ns") if by_time else time_in(file.name)
    stream = file.parts[0] if len(file.parts) > 1 else folder.resolve().name
    label = file.parts[1] if len(file.parts) > 2 else ""
    return Frame(file.as_posix(), label, written, stream, stream)


def _frame_of_row(path: str, number: int, row: dict[str | None, str | None]) -> Frame:
    values = {name: (row.get(name) or "").strip() for name in _COLUMNS}
    if not values["path"] or None in row:
        raise DamagedDataError(f"{path}, line {number}: expected a path and no more columns than the header has")
    stream = values["stream"] or "recorded"
    time = _time_of(path, number, values["time"])
    return Frame(values["path"], values["label"], time, values["domain"] or stream, stream)


def _time_of(path: str, number: int, text: str) -> np.datetime64:
    if not text:
        return NOT_A_TIME
    try:
        seconds = re.fullmatch(r"\d+(\.\d*)?", text)
        return np.datetime64(round(float(text)) if seconds else text.removesuffix("Z"), "s")
    except ValueError:
        message = f"{path}, line {number}: time must be ISO 8601 (2012-12-12T13:05:08) or seconds, got {text!r}"
        raise DamagedDataError(message) from None


def _check_files(path: str, folder: Path, frames: Sequence[Frame]) -> None:
    for number, frame in enumerate(frames, start=2):
        if not (folder / frame.path).is_file():
            raise DamagedDataError(f"{path}, line {number}: there is no file {frame.path} in {folder}")


def _check_times(path: str, frames: Sequence[Frame]) -> None:
    latest: dict[str, np.datetime64] = {}
    for number, frame in enumerate(frames, start=2):
        if not np.isnat(frame.time):
            if frame.time < latest.get(frame.stream, frame.time):
                raise DamagedDataError(
                    f"{path}, line {number}: the times of stream {frame.stream!r} must not go backwards, got "
                    f"{frame.time} after {latest[frame.stream]}; sort the rows by time"
                )
            latest[frame.stream] = frame.time
