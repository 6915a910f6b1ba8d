"""Running a task so that every outcome is an event."""

import time
import traceback
import warnings

from grotta._errors import one_line
from grotta._files import BusyError
from grotta.bench.cell.loop import run_cell
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Event, Failure, Finished, Progressed, Waiting, Warned
from grotta.bench.store.results import cell_directory

# Progress is for display: reporting it more often only costs time.
PROGRESS_SECONDS = 0.2


def run_and_report(task: CellTask, emit: Emit, progress_seconds: float = PROGRESS_SECONDS) -> None:
    """Run a cell; ends with ``Finished``, ``Failure`` or, if another process has the cell, ``Waiting``."""
    spec = task.spec
    said: set[str] = set()

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            emit(Warned(spec, str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = warn
        try:
            result = run_cell(task, throttled(emit, progress_seconds))
        except BusyError:
            return emit(Waiting(spec))
        except BrokenPipeError:
            raise  # nobody is listening anymore
        except Exception as error:
            return emit(Failure(spec, one_line(error, cell_directory(task.out, spec)), traceback.format_exc()))
    emit(Finished(spec, result))


def throttled(emit: Emit, seconds: float) -> Emit:
    """``emit``, but with progress at most every ``seconds``, and at the end of the cell."""
    due = 0.0

    def send(event: Event) -> None:
        nonlocal due
        if isinstance(event, Progressed) and event.progress.images < event.progress.total:
            if time.monotonic() < due:
                return
            due = time.monotonic() + seconds
        emit(event)

    return send
