"""DomainNet's lists of labels: text files with a ``path label`` on each line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grotta.data.errors import DamagedDataError
from grotta.data.pictures import Listing


def list_files(folder: Path, domain: str) -> list[Path]:
    """The lists of a domain that are in ``folder``: all its pictures, those for training and those for testing."""
    return [path for split in ("train", "test") if (path := folder / f"{domain}_{split}.txt").is_file()]


def read_listing(folder: Path, domain: str) -> Listing:
    """The pictures in the lists of one domain."""
    rows = [row for path in list_files(folder, domain) for row in _rows(path)]
    return Listing(folder, tuple(name for name, _ in rows), np.array([label for _, label in rows], dtype=np.int64))


def read_class_names(folder: Path, domains: Sequence[str]) -> tuple[str, ...]:
    """The classes by label: the second part of each path, ``clipart/zebra/clipart_343_000001.jpg``."""
    names: dict[int, str] = {}
    for domain in domains:
        for path in list_files(folder, domain):
            for name, label in _rows(path):
                if names.setdefault(label, name.split("/")[1]) != name.split("/")[1]:
                    raise DamagedDataError(f"{path} calls label {label} {name.split('/')[1]}, not {names[label]}")
    if sorted(names) != list(range(len(names))):
        raise DamagedDataError(f"{folder}: the lists name {len(names)} labels, but not 0 to {len(names) - 1}")
    return tuple(names[label] for label in range(len(names)))


def _rows(path: Path) -> list[tuple[str, int]]:
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError as error:
        raise DamagedDataError(f"{path} is not a text file: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, _, label = line.rpartition(" ")
        if name.count("/") != 2 or not label.isdecimal():
            raise DamagedDataError(f"{path}, line {number}: expected 'domain/class/picture label', got {line!r}")
        rows.append((name, int(label)))
    if not rows:
        raise DamagedDataError(f"{path} is empty: expected 'domain/class/picture label' on each line")
    return rows
