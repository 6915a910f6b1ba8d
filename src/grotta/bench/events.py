"""What happens while a grid runs, as values: every executor sends them, every display reads them."""

from collections.abc import Callable
from dataclasses import dataclass

from grotta.bench.cell.loop import Progress
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult


@dataclass(frozen=True)
class Preparing:
    """Data, the ``number``-th of ``total``, is being made, found or sent before any cell needs it."""

    what: str
    number: int
    total: int


@dataclass(frozen=True)
class Started:
    """A worker has taken up a cell."""

    spec: CellSpec
    worker: str


@dataclass(frozen=True)
class Progressed:
    """A cell has come further; sent a few times a second."""

    spec: CellSpec
    progress: Progress


@dataclass(frozen=True)
class Waiting:
    """Another run in the same directory has the cell; its result will be taken when it is there."""

    spec: CellSpec


@dataclass(frozen=True)
class Retried:
    """The cell's worker died; the cell goes on in another one."""

    spec: CellSpec
    reason: str


@dataclass(frozen=True)
class Warned:
    """Something that a user should know, while a cell goes on."""

    spec: CellSpec
    message: str


@dataclass(frozen=True)
class Finished:
    """A cell has its result; ``reused`` if it was there before."""

    spec: CellSpec
    result: CellResult
    reused: bool = False


@dataclass(frozen=True)
class Failure:
    """A cell has none and will have none: ``message`` in one line, ``details`` for whoever looks for the cause."""

    spec: CellSpec
    message: str
    details: str = ""


Event = Preparing | Started | Progressed | Waiting | Retried | Warned | Finished | Failure
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Take no notice."""
