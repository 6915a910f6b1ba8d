"""Cells in this process, one after the other."""

from collections.abc import Sequence
from dataclasses import replace

from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Event, Waiting
from grotta.bench.execute.executor import Executor, Workers
from grotta.bench.execute.reporting import run_and_report


def run(tasks: Sequence[CellTask], workers: Workers, emit: Emit) -> None:
    """Run the tasks in order; those that another run is working on come last."""
    busy: list[CellTask] = []
    for task in tasks:

        def note(event: Event, task: CellTask = task) -> None:
            if isinstance(event, Waiting):
                busy.append(task)
            emit(event)

        run_and_report(replace(task, wait=False), note, progress_seconds=0)
    for task in busy:
        run_and_report(replace(task, wait=True), emit, progress_seconds=0)


EXECUTOR = Executor(run)
