"""What happens while cells run, as values: every executor sends them, every display reads them."""

from collections.abc import Callable
from dataclasses import dataclass

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult


@dataclass(frozen=True)
class Progress:
    """How far a cell has come: images seen and wrong answers among them, overall and in the current domain."""

    images: int
    wrong: int
    total: int
    domain: str
    domain_images: int
    domain_wrong: int

    @property
    def error(self) -> float:
        """In per cent, so far."""
        return 100.0 * self.wrong / max(self.images, 1)

    @property
    def domain_error(self) -> float:
        """In per cent, so far in the current domain."""
        return 100.0 * self.domain_wrong / max(self.domain_images, 1)


@dataclass(frozen=True)
class Preparing:
    """Data, item ``number`` of ``total``, is being made, found or sent before any cell needs it."""

    what: str
    number: int
    total: int


@dataclass(frozen=True)
class Started:
    """A worker has started a cell."""

    spec: CellSpec
    worker: str


@dataclass(frozen=True)
class Progressed:
    """A cell has made progress; sent a few times per second."""

    spec: CellSpec
    progress: Progress


@dataclass(frozen=True)
class Waiting:
    """Another run in the same directory has the cell; its result will be used when it is finished."""

    spec: CellSpec


@dataclass(frozen=True)
class Retried:
    """The cell's worker died; another one resumes the cell."""

    spec: CellSpec
    reason: str


@dataclass(frozen=True)
class Warned:
    """Something that a user should know; the cell runs all the same."""

    spec: CellSpec
    message: str


@dataclass(frozen=True)
class Finished:
    """A cell has its result; ``reused`` if it had it before."""

    spec: CellSpec
    result: CellResult
    reused: bool = False


@dataclass(frozen=True)
class Failure:
    """A cell has failed: ``message`` in one line, ``details`` for whoever looks for the cause."""

    spec: CellSpec
    message: str
    details: str = ""


Event = Preparing | Started | Progressed | Waiting | Retried | Warned | Finished | Failure
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Do nothing with an event."""
