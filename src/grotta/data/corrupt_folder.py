"""Corrupt your own pictures into the layout of ImageNet-C: ``<corruption>/<severity>/<class>/<name>.JPEG``."""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from grotta import _files
from grotta._check import check_one_of, check_whole
from grotta.data.arrays import Images
from grotta.data.corruptions import BENCHMARK_DOMAINS, SEVERITIES, Scale, corrupt, list_corruptions
from grotta.data.decode import SUFFIXES, open_picture, resize_and_crop, short_side
from grotta.data.errors import DamagedDataError, DataNotFoundError
from grotta.data.folders import CORRUPTED
from grotta.data.progress import progress
from grotta.data.regenerate import generator_version

SIDE: dict[Scale, int] = {"cifar": 32, "imagenet": 224}
SMALLEST = 8  # side of a picture that can be corrupted
QUALITY = 85  # of the JPEG files, as published


@dataclass(frozen=True)
class Corruptor:
    """What to make of every picture."""

    corruptions: Sequence[str] = BENCHMARK_DOMAINS  # names of corruptions
    severities: Sequence[int] = (5,)  # 1 to 5
    # which published constants; also the size that pictures are resized and cropped to, 32 or 224
    scale: Scale = "imagenet"
    seed: int = 0  # of everything random
    # leave pictures as large as they are; lengths of blurs and the like stay those for 32 or 224 pixels
    keep_size: bool = False

    def __post_init__(self) -> None:
        _check_different("corruptions", self.corruptions, list_corruptions())
        _check_different("severities", self.severities, range(1, SEVERITIES + 1))
        check_one_of("scale", self.scale, SIDE)
        check_whole("seed", self.seed, at_least=0)


def _check_different(argument: str, values: Sequence[object], known: Sequence[object]) -> None:
    if not values or not set(values) <= set(known) or len(set(values)) < len(values):
        raise ValueError(f"{argument} must be different ones of {', '.join(map(str, known))}; got {list(values)}")


@dataclass(frozen=True)
class Outcome:
    """What became of the pictures."""

    made: int  # files written now
    kept: int  # files that were there from an earlier run
    damaged: tuple[str, ...]  # pictures that could not be read, with the reason


def corrupt_folder(source: Path, out: Path, corruptor: Corruptor) -> Outcome:
    """Write corrupted copies of every picture under ``source`` to ``out``, keeping class folders.

    Files from an earlier run with the same settings are not made again, unless their picture is newer. What
    happens to a picture depends on its path below ``source``, its pixels and the settings, not on the other pictures.
    """
    names = _picture_names(source, out)
    wanted = [(corruption, severity) for corruption in corruptor.corruptions for severity in corruptor.severities]
    made, damaged = 0, []
    label = f"Corrupting {len(names)} pictures in {len(wanted)} ways"
    pool = ThreadPoolExecutor(os.cpu_count())
    with _files.locked(out / CORRUPTED):
        _settle(out / CORRUPTED, corruptor)
        with progress(label, len(names) * len(wanted), unit="files") as advance, _stopping(pool):
            for task in [pool.submit(_corrupt_picture, source, name, out, corruptor, wanted) for name in names]:
                try:
                    made += task.result()
                except DamagedDataError as error:
                    damaged.append(str(error))
                advance(len(wanted))
    kept = (len(names) - len(damaged)) * len(wanted) - made
    return Outcome(made, kept, tuple(damaged))


@contextlib.contextmanager
def _stopping(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Stop at once when interrupted, instead of first doing all that is queued."""
    try:
        yield
    finally:
        pool.shutdown(cancel_futures=True)


def _picture_names(source: Path, out: Path) -> list[str]:
    """The pictures below ``source``, relative to it; checks that no two would be written to the same file."""
    if not source.is_dir():
        raise DataNotFoundError(f"{source} is not a folder")
    if out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"out must be a folder beside {source}, got {out}, which is inside it")
    names = sorted(
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    if not names:
        raise DataNotFoundError(f"{source} has no pictures ({', '.join(sorted(SUFFIXES))})")
    first: dict[Path, str] = {}
    for name in names:
        other = first.setdefault(Path(name).with_suffix(""), name)
        if other != name:
            raise ValueError(f"{source}: {other} and {name} would both become {Path(name).stem}.JPEG; rename one")
    return names


def _settle(path: Path, corruptor: Corruptor) -> None:
    """Record the settings beside the results, or fail if existing results were made with others."""
    settings = {
        "scale": corruptor.scale,
        "seed": corruptor.seed,
        "keep_size": corruptor.keep_size,
        "quality": QUALITY,
        "generator": generator_version(),
    }
    if not path.is_file():
        _files.write(path, json.dumps(settings, indent=1).encode())
        return
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedDataError(
            f"{path} cannot be read ({error}); choose another folder, "
            "or remove that file if the results beside it were made with the present settings"
        ) from error
    if found != settings:
        raise ValueError(
            f"out must be a folder for results of these settings, got {path.parent}, which holds others ({path.name})"
        )


def _corrupt_picture(
    source: Path, name: str, out: Path, corruptor: Corruptor, wanted: Sequence[tuple[str, int]]
) -> int:
    """Write the copies of one picture that are missing or out of date; returns how many."""
    relative = Path(name).with_suffix(".JPEG")
    targets = [(out / corruption / str(severity) / relative, corruption, severity) for corruption, severity in wanted]
    missing = [target for target in targets if not _is_current(target[0], source / name)]
    if not missing:
        return 0
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    try:
        clean = _read(source / name, None if corruptor.keep_size else SIDE[corruptor.scale])
        for path, corruption, severity in missing:
            made = corrupt(clean, corruption, severity, scale=corruptor.scale, seed=corruptor.seed, first_index=number)
            _write(path, made[0])
    except MemoryError as error:
        raise DamagedDataError(f"{source / name} is too large for the memory of this machine") from error
    return len(missing)


def _is_current(result: Path, original: Path) -> bool:
    try:
        return result.stat().st_mtime_ns >= original.stat().st_mtime_ns
    except OSError:
        return False


def _read(path: Path, side: int | None) -> Images:
    """A picture as (1, H, W, 3), upright, and cropped to a square unless ``side`` is None."""
    # The copies carry no orientation tag, so a photograph has to be turned now.
    picture = open_picture(path, upright=True)
    if side is not None:
        picture = resize_and_crop(picture, short_side(side), side)
    if min(picture.size) < SMALLEST:
        raise DamagedDataError(
            f"{path} is too small: {picture.size[0]}x{picture.size[1]}, at least {SMALLEST} pixels per side are needed"
        )
    return np.asarray(picture)[None]


def _write(path: Path, pixels: Images) -> None:
    # Pillow does not report a full disk, which leaves a truncated file, so it does not write the file itself.
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=QUALITY, optimize=True)
    _files.write(path, content.getvalue(), bulk=True)
