"""Cells on this machine: one process per core, each taking another cell when it is free.

The first worker takes the cheapest cell that is left, the others the most expensive one: rows appear soon, and no long
cell is left for the end.
"""

import contextlib
import os
import pickle
import queue
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, cast

from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Event, Failure, Retried, Waiting
from grotta.bench.execute.executor import Executor, Workers
from grotta.bench.execute.prepare import PrepareTask, shared_data
from grotta.bench.execute.worker import COMMAND
from grotta.bench.process import worker_environment

# A cell whose worker died (killed, out of memory, a crash in native code) is tried once more.
ATTEMPTS = 2
Task = CellTask | PrepareTask
_LAST_WORDS = 2000


class WorkerDiedError(RuntimeError):
    """A worker ended in the middle of a task; the message says how."""


class Worker:
    """A process of :mod:`grotta.bench.execute.worker`, started on its first task."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self._stopped = False

    def ask(self, task: Task) -> Iterator[Event]:
        """The events of a task as they arrive; ``WorkerDiedError`` if the process ends before the task does."""
        process = self._running()
        inbox, outbox = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        try:
            pickle.dump(task, inbox)
            inbox.flush()
            while (event := pickle.load(outbox)) is not None:
                yield event
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise WorkerDiedError(self._cause_of_death(process)) from error

    def stop(self) -> None:
        """End the process for good; its cell can be resumed from the last checkpoint."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Release a stopped process."""
        self._errors.close()
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise WorkerDiedError("it was stopped")
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    env=worker_environment(),
                    process_group=0,  # the terminal's Ctrl-C goes to the parent alone
                )
            return self._process

    def _cause_of_death(self, process: subprocess.Popen[bytes]) -> str:
        process.kill()
        with contextlib.suppress(BrokenPipeError):
            process.communicate()
        code = process.returncode
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS))
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"its process ended with {how}" + (f": {words[-1].strip()}" if words else "")


class Todo:
    """The remaining tasks, shared by threads: taken from the cheap or the expensive end, busy ones last."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = deque((task, 1) for task in tasks)
        self._busy: deque[tuple[Task, int]] = deque()

    def take(self, *, cheapest: bool) -> tuple[Task, int] | None:
        """A task and the number of the attempt at it; None if there are no more."""
        with contextlib.suppress(IndexError):
            return self._tasks.popleft() if cheapest else self._tasks.pop()
        with contextlib.suppress(IndexError):
            return self._busy.popleft()
        return None

    def again(self, task: Task, number: int) -> None:
        """Put a task back for attempt ``number``."""
        self._tasks.append((task, number))

    def later(self, task: Task, number: int) -> None:
        """Put a task back until nothing else is left."""
        self._busy.append((task, number))


class Pool:
    """Workers, each driven by a thread; all events come out in the calling thread."""

    def __init__(self, workers: int) -> None:
        self._workers = [Worker() for _ in range(workers)]
        self._threads: list[threading.Thread] = []
        self._events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self._stopped = False

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped = True
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            worker.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[Event]:
        """Run the tasks, cheapest first, as workers become free; yields their events until all are done."""
        todo = Todo(tasks)
        self._threads = [
            threading.Thread(target=self._drive, args=(worker, todo, number == 0), daemon=True)
            for number, worker in enumerate(self._workers)
        ]
        for thread in self._threads:
            thread.start()
        running = len(self._threads)
        while running:
            event = self._events.get()
            if event is None:
                running -= 1
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event

    def _drive(self, worker: Worker, todo: Todo, cheapest: bool) -> None:
        """Take tasks until there are none. A thread that puts one back takes it up again itself if need be."""
        try:
            while not self._stopped and (taken := todo.take(cheapest=cheapest)) is not None:
                self._do(worker, *taken, todo)
        except BaseException as error:  # a thread's error is the caller's
            self._events.put(error)
        self._events.put(None)

    def _do(self, worker: Worker, task: Task, number: int, todo: Todo) -> None:
        try:
            for event in worker.ask(task):
                if isinstance(event, Waiting) and isinstance(task, CellTask):
                    todo.later(replace(task, wait=True), number)
                self._events.put(event)
        except WorkerDiedError as error:
            if self._stopped or isinstance(task, PrepareTask):
                return
            if number < ATTEMPTS:
                self._events.put(Retried(task.spec, str(error)))
                todo.again(task, number + 1)
            else:
                self._events.put(Failure(task.spec, f"{error} ({ATTEMPTS} times)"))


def run(tasks: Sequence[CellTask], workers: Workers, emit: Emit) -> None:
    """Run cells in processes of this machine, after making the data that they share."""
    with Pool(min(workers.count or cores(), len(tasks))) as pool:
        for stage in (shared_data(tasks), [replace(task, wait=False) for task in tasks]):
            for event in pool.run(stage):
                emit(event)


def make_data(tasks: Sequence[CellTask], *, emit: Emit) -> None:
    """Make the data that cells share, with all cores of this machine."""
    with Pool(cores()) as pool:
        for event in pool.run(shared_data(tasks)):
            emit(event)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


EXECUTOR = Executor(run)
