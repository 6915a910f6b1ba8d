"""Cells on this machine: one process a core, each taking the next cell when it is free."""

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

from grotta.bench.events import Emit, Event, Failure, Retried, Waiting
from grotta.bench.execute.process import worker_environment
from grotta.bench.execute.task import CellTask, PrepareTask, shared_data
from grotta.bench.execute.worker import COMMAND

# A cell whose worker died (killed, out of memory, a crash in native code) gets one more chance.
ATTEMPTS = 2
Task = CellTask | PrepareTask
Todo = deque[tuple[Task, int]]  # with the number of the attempt
_LAST_WORDS = 2000


class WorkerDiedError(RuntimeError):
    """A worker ended in the middle of a task; the message says how."""


class Worker:
    """A process of :mod:`grotta.bench.execute.worker`, started when it is first asked something."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self._stopped = False

    def ask(self, task: Task) -> Iterator[Event]:
        """The events of a task as they come; ``WorkerDiedError`` if the process ends before the task does."""
        process = self._running()
        inbox, outbox = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        try:
            pickle.dump(task, inbox)
            inbox.flush()
            while (event := pickle.load(outbox)) is not None:
                yield event
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise WorkerDiedError(self._obituary(process)) from error

    def stop(self) -> None:
        """End the process for good; what it was doing goes on from its last checkpoint another time."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Let go of a stopped process."""
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

    def _obituary(self, process: subprocess.Popen[bytes]) -> str:
        process.kill()
        with contextlib.suppress(BrokenPipeError):
            process.communicate()
        code = process.returncode
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _LAST_WORDS))
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"its process ended with {how}" + (f": {words[-1].strip()}" if words else "")


class Pool:
    """Some workers, each driven by a thread; all events come out in the thread that calls."""

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
        """Do the tasks, in order as workers are free; yields their events until all are done."""
        todo: Todo = deque((task, 1) for task in tasks)
        self._threads = [threading.Thread(target=self._drive, args=(w, todo), daemon=True) for w in self._workers]
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

    def _drive(self, worker: Worker, todo: Todo) -> None:
        """Take tasks until there are none. Whoever puts one back goes on itself, so none is left behind."""
        try:
            while not self._stopped:
                try:
                    task, number = todo.popleft()
                except IndexError:
                    break
                self._do(worker, task, number, todo)
        except BaseException as error:  # a thread's error is the caller's
            self._events.put(error)
        self._events.put(None)

    def _do(self, worker: Worker, task: Task, number: int, todo: Todo) -> None:
        try:
            for event in worker.ask(task):
                if isinstance(event, Waiting) and isinstance(task, CellTask):
                    todo.append((replace(task, wait=True), number))  # last, when there is nothing better to do
                self._events.put(event)
        except WorkerDiedError as error:
            if self._stopped or isinstance(task, PrepareTask):
                return
            if number < ATTEMPTS:
                self._events.put(Retried(task.spec, str(error)))
                todo.appendleft((task, number + 1))
            else:
                self._events.put(Failure(task.spec, f"{error} ({ATTEMPTS} times)"))


def run_local(tasks: Sequence[CellTask], *, workers: int | None, emit: Emit) -> None:
    """Run cells in processes of this machine, after making the data that they share."""
    with Pool(min(workers or cores(), max(len(tasks), 1))) as pool:
        for stage in (shared_data(tasks), tasks):
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
