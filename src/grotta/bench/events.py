"""What happens while cells run, as values: every executor sends them, every display reads them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult


@dataclass(frozen=True)
class Progress:
    """The progress of a cell: images seen and wrong answers among them, overall and in the current domain.

    Images without a label (``unknown``) count as seen, but not for the errors.
    """

    images: int
    wrong: int
    total: int
    domain: str
    domain_images: int
    domain_wrong: int
    unknown: int = 0
    domain_unknown: int = 0

    @property
    def error(self) -> float:
        """In per cent, so far; NaN if no image has had a label."""
        return _error(self.wrong, self.images - self.unknown)

    @property
    def domain_error(self) -> float:
        """In per cent, so far in the current domain; NaN if no image of it has had a label."""
        return _error(self.domain_wrong, self.domain_images - self.domain_unknown)


@dataclass(frozen=True)
class Preparing:
    """Data that cells need, item ``number`` of ``total``, is being made, found or sent."""

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
    """Another run in the same directory is running the cell; its result will be used."""

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
    """A cell has its result; ``reused`` if it already had one."""

    spec: CellSpec
    result: CellResult
    reused: bool = False


@dataclass(frozen=True)
class Failure:
    """A cell has failed: ``message`` in one line, ``details`` for debugging."""

    spec: CellSpec
    message: str
    details: str = ""


Event = Preparing | Started | Progressed | Waiting | Retried | Warned | Finished | Failure
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Do nothing with an event."""


def _error(wrong: int, labelled: int) -> float:
    return 100.0 * wrong / labelled if labelled else math.nan
