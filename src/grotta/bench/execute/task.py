"""What a worker does with a task: whatever comes of it is an event."""

import contextlib
import os
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from grotta import data
from grotta.bench.cell.loop import CHECKPOINT_SECONDS, Progress, run_cell
from grotta.bench.events import Emit, Failure, Finished, Preparing, Progressed, Started, Waiting, Warned
from grotta.bench.execute.shipping import Supply
from grotta.bench.spec import CellSpec
from grotta.bench.store.lock import CellBusyError
from grotta.bench.store.results import cell_directory

# Progress is for eyes: more often than this it only costs.
PROGRESS_SECONDS = 0.2


@dataclass(frozen=True)
class CellTask:
    """A cell to run, and where; fields as the arguments of ``run_cell``, and the data and network it brings along."""

    spec: CellSpec
    out: Path
    data_root: Path | None = None
    device: str = "cpu"
    wait: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    supply: Supply | None = None


@dataclass(frozen=True)
class PrepareTask:
    """A domain whose images are to be made or found: the ``number``-th of ``total``."""

    dataset: str
    domain: str
    data_root: Path | None
    image_size: int
    number: int
    total: int


def shared_data(tasks: Sequence[CellTask]) -> list[PrepareTask]:
    """What has to be there before the cells can run, each domain once."""
    domains = {
        (task.spec.dataset, domain, task.data_root, task.spec.image_size): None
        for task in tasks
        for domain in task.spec.domains
    }
    return [PrepareTask(*domain, number, len(domains)) for number, domain in enumerate(domains, start=1)]


def prepare(task: PrepareTask, emit: Emit) -> None:
    """Make the images of a domain, if they are not there."""
    emit(Preparing(f"{task.dataset} {task.domain}", task.number, task.total))
    with contextlib.suppress(Exception):  # the cells that need them will say what is wrong
        data.load(
            task.dataset, root=task.data_root, domains=[task.domain], image_size=task.image_size, keep_decoded=True
        ).prepare()


def attempt(task: CellTask, emit: Emit) -> None:
    """Run a cell; ends with ``Finished``, ``Failure`` or, if another process has the cell, ``Waiting``."""
    spec = task.spec
    throttle = _Throttle(spec, emit)
    said: set[str] = set()

    def say(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            emit(Warned(spec, str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = say
        try:
            result = run_cell(
                spec,
                task.out,
                data_root=task.data_root,
                device=task.device,
                on_start=lambda: emit(Started(spec, f"process {os.getpid()}")),
                on_progress=throttle,
                wait=task.wait,
                checkpoint_seconds=task.checkpoint_seconds,
                open_with=task.supply.open if task.supply else None,
            )
        except CellBusyError:
            return emit(Waiting(spec))
        except BrokenPipeError:
            raise  # nobody listens any more
        except Exception as error:
            return emit(Failure(spec, one_line(error, cell_directory(task.out, spec)), traceback.format_exc()))
    emit(Finished(spec, result))


def one_line(error: BaseException, place: Path | None = None) -> str:
    """An error as one line for a user; one of the system that names no file is said to be about ``place``.

    What was worded for users stands as it is; what nobody expected begins with the name of its class.

    >>> one_line(ValueError("gamma: expected a positive number\\nand more"))
    'gamma: expected a positive number and more'
    >>> one_line(OSError(28, "No space left on device"), Path("runs/cells/ab"))
    'No space left on device: runs/cells/ab'
    >>> one_line(KeyError("fc"))
    "KeyError: 'fc'"
    """
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text, place = error.strerror, error.filename or place
    elif not isinstance(error, SafetensorError):  # writes files, and does not say which
        place = None
    worded = isinstance(error, ValueError | TypeError | OSError) or type(error).__module__.startswith("grotta.")
    name = "" if worded and text else type(error).__name__
    return ": ".join(str(part) for part in (name, text, place) if part)


class _Throttle:
    """Passes on the first and the last progress, and between them one every now and then."""

    def __init__(self, spec: CellSpec, emit: Emit) -> None:
        self.spec = spec
        self.emit = emit
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now >= self._next or progress.images == progress.total:
            self._next = now + PROGRESS_SECONDS
            self.emit(Progressed(self.spec, progress))
