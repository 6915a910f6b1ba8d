"""Work that is done in order for each stream, and side by side for different streams."""

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
_Job = tuple[Callable[[], Any], "Future[Any]", bool]


class Workers:
    """Threads that serve many strands in turn, one job at a time from each."""

    def __init__(self, threads: int, *, niceness: int = 0) -> None:
        self._ready: deque[Strand] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._niceness = niceness
        self._threads = [threading.Thread(target=self._run, name=f"adapt-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Do what is waiting, then end the threads."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        if self._niceness and sys.platform == "linux":  # there, threads have priorities of their own
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._niceness)
        while True:
            with self._wake:
                while not self._ready:
                    if self._stopping:
                        return
                    self._wake.wait()
                strand = self._ready.popleft()
                job = strand._jobs.popleft()
                strand._discardable -= job[2]
            _do(*job[:2])
            with self._wake:
                if strand._jobs:
                    self._ready.append(strand)
                    self._wake.notify()
                else:
                    strand._scheduled = False


class Strand:
    """The jobs of one stream: done one after the other, in the order they came.

    >>> workers = Workers(2)
    >>> strand, seen = Strand(workers), []
    >>> [strand.submit(lambda i=i: seen.append(i)) for i in range(3)][-1].result()
    >>> seen
    [0, 1, 2]
    >>> workers.stop()
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._jobs: deque[_Job] = deque()
        self._discardable = 0
        self._scheduled = False

    def submit(self, job: Callable[[], Result], *, discardable: bool = False) -> "Future[Result]":
        """Do ``job`` after all that came before it."""
        future: Future[Result] = Future()
        with self._workers._wake:
            if self._workers._stopping:
                raise RuntimeError("the workers have been stopped")
            self._jobs.append((job, future, discardable))
            self._discardable += discardable
            if not self._scheduled:
                self._scheduled = True
                self._workers._ready.append(self)
                self._workers._wake.notify()
        return future

    def discard(self) -> int:
        """Drop the discardable jobs that have not begun; returns how many."""
        with self._workers._wake:
            dropped = [job for job in self._jobs if job[2]]
            kept = [job for job in self._jobs if not job[2]]
            self._discardable = 0
            self._jobs.clear()
            self._jobs.extend(kept)
            if self._scheduled and not kept and self in self._workers._ready:
                self._workers._ready.remove(self)
                self._scheduled = False
        for _, future, _ in dropped:
            future.cancel()
        return len(dropped)

    def __len__(self) -> int:
        """Discardable jobs that have not begun."""
        return self._discardable


def _do(job: Callable[[], Any], future: "Future[Any]") -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job())
    except BaseException as error:
        future.set_exception(error)
