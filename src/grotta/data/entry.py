"""What the registry knows about a data set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grotta.data.dataset import DomainDataset
from grotta.data.options import Options


@dataclass(frozen=True)
class Holding:
    """The parts of a data set that the data roots have."""

    here: tuple[tuple[str, Path], ...] = ()  # the parts that are present, each with its place
    missing: tuple[str, ...] = ()  # what is missing of a set that is partly present, in words


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set with a name."""

    name: str  # what it is loaded by
    title: str  # what it is
    find: Callable[[Sequence[Path]], Holding]  # which parts of it are in the roots
    looks_for: str  # what ``find`` looks for in a root, in words
    # puts it into a data root, or explains what to do by hand; None if there is nothing to download
    get: Callable[[Path], None] | None
    size: str  # of the download, or why there is none
    # opens the data set with the given options; None for clean sets of small pictures, which have no domains
    open: Callable[[Options], DomainDataset] | None = None
    # opens its pictures in recorded order, one domain per camera; None if that is not known
    record: Callable[[Options], DomainDataset] | None = None
    # opens the pictures that a network for it is trained on, as a data set of two domains: those to train on, then
    # those to measure on. None where a domain has to be chosen.
    train: Callable[[Options], DomainDataset] | None = None
    corrupted: str = ""  # for a clean set, the name of the data set of its corruptions
    listed: bool = True  # whether it is one of the benchmark's
    from_files: bool = False  # whether it is decoded from picture files, in the size that is asked for
    domains: tuple[str, ...] = ()  # the published names of its domains, if each of them can be the source of the others


def unless_here(find: Callable[[Sequence[Path]], Holding], get: Callable[[Path], None], root: Path) -> None:
    """Call ``get`` unless ``root`` already has everything: for data that has to be fetched by hand."""
    holding = find((root,))
    if not holding.here or holding.missing:
        get(root)
