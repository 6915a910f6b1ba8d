"""Where work is done beside the event loop."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from grotta.serve.streams.gate import Gate
from grotta.serve.streams.strand import Strand, Workers
from grotta.serve.streams.stream import Stream

Result = TypeVar("Result")
_LOWER = 10  # niceness of threads that adapt: answers go first


class Threads:
    """Threads for answers, threads for files, and others of a lower priority for learners."""

    def __init__(self, answering: int, adapting: int) -> None:
        self.gate = Gate()
        self._answering = ThreadPoolExecutor(answering, thread_name_prefix="answer")
        self._files = ThreadPoolExecutor(4, thread_name_prefix="files")
        self._building = ThreadPoolExecutor(1, thread_name_prefix="build")  # more would only take turns
        self._workers = Workers(adapting, niceness=_LOWER)

    def strand(self) -> Strand:
        """For what a new stream learns."""
        return Strand(self._workers)

    async def answer(self, job: Callable[[], Result]) -> Result:
        """Do ``job`` before any learner goes on."""
        with self.gate:
            return await asyncio.get_running_loop().run_in_executor(self._answering, job)

    async def files(self, job: Callable[[], Result]) -> Result:
        """Do ``job``, which reads or writes files."""
        return await asyncio.get_running_loop().run_in_executor(self._files, job)

    async def build(self, job: Callable[[], Result]) -> Result:
        """Do ``job``, which makes adapters for a stream that is asked, before any learner goes on."""
        with self.gate:
            return await asyncio.get_running_loop().run_in_executor(self._building, job)

    async def on_strand(self, stream: Stream, job: Callable[[Stream], Result]) -> Result:
        """Do ``job`` after all that ``stream`` has still to learn."""
        return await asyncio.wrap_future(stream.strand.submit(functools.partial(job, stream)))

    async def stop(self) -> None:
        """Do what is waiting, then end the threads."""
        self._answering.shutdown()
        await asyncio.to_thread(self._workers.stop)
        self._files.shutdown()
        self._building.shutdown()
