"""Streams come, are answered, learn, go to disk and come back: everything a server does, without HTTP."""

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from grotta.methods.step_info import StepInfo
from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused, bad, later
from grotta.serve.guard import guard_events
from grotta.serve.loading import load_pair
from grotta.serve.logs import Events
from grotta.serve.metrics import Metrics
from grotta.serve.names import DEFAULT_STREAM
from grotta.serve.ownership import Ownership
from grotta.serve.pair import Pair
from grotta.serve.request import InferRequest
from grotta.serve.settings import Settings
from grotta.serve.store import StreamStore
from grotta.serve.strand import Strand, Workers
from grotta.serve.stream import Stream
from grotta.serve.tensors import Array

Result = TypeVar("Result")
_RETRY_SECONDS = 0.25
_LOWER = 10  # niceness of threads that adapt: answers go first


class Service:
    """All streams of all models in one process.

    Requests run on the event loop and hold a stream's turn; networks run in threads. Answers have threads of their own,
    learners have others, of lower priority.
    """

    def __init__(self, settings: Settings, models: dict[str, ServedModel]) -> None:
        self.settings = settings
        self.models = models
        self.metrics = Metrics()
        self.events = Events()
        self.ownership = Ownership(settings)
        self.streams: dict[tuple[str, str], Stream] = {}
        self.waiting = 0
        self.draining = False
        self.stored_bytes = 0
        self._room = asyncio.Lock()

    @property
    def store(self) -> StreamStore:
        """Where streams are kept."""
        return self.ownership.store

    # A server's life -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Hold the state folder, and know what is in it."""
        self._loop = asyncio.get_running_loop()
        self._answering = ThreadPoolExecutor(self.settings.answer_threads, thread_name_prefix="answer")
        self._files = ThreadPoolExecutor(4, thread_name_prefix="files")
        self.workers = Workers(self.settings.adapt_threads, niceness=_LOWER)
        try:
            self.ownership.take()
        except BaseException:
            self.workers.stop()
            raise
        for model in self.models.values():
            for stored in self.store.streams(model.name):
                self.streams[model.name, stored.name] = Stream(
                    model, stored.name, Strand(self.workers), started=not stored.ended, created=stored.created
                )
        self.stored_bytes = self.store.size()
        self.events.note("server_started", server=self.ownership.server, streams=len(self.streams))

    async def stop(self) -> None:
        """Learn what is waiting as long as there is time, save every stream, and let the folder go."""
        self.draining = True
        live = [stream for stream in self.streams.values() if stream.is_live]
        deadline = time.monotonic() + self.settings.drain_seconds
        waiting = [asyncio.wrap_future(stream.strand.submit(_nothing)) for stream in live]
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, deadline - time.monotonic()))
        dropped = sum(stream.strand.discard() for stream in live)
        saved = await asyncio.gather(*(self._on_strand(stream, self._save) for stream in live))
        self._answering.shutdown()
        await asyncio.to_thread(self.workers.stop)
        self._files.shutdown()
        self.ownership.give_up()
        self.events.note("server_stopped", saved=sum(saved), unlearned=dropped)

    # Requests --------------------------------------------------------------------------------------------------

    async def infer(self, model: ServedModel, request: InferRequest) -> tuple[Array, Stream]:
        """Probabilities (B, classes) for the request's images, and the stream they belong to."""
        if self.draining:
            raise later("the server is shutting down", 5)
        if self.waiting >= self.settings.max_waiting:
            self.metrics.refused.inc()
            raise later(f"{self.waiting} requests are waiting already")
        if self.settings.strict_sequences and request.stream is None:
            raise bad(f"inference request to model '{model.name}' must specify a non-zero or non-empty correlation ID")
        self.waiting += 1
        try:
            async with self.turn(lambda: self.find_or_add(model, request.stream or DEFAULT_STREAM)) as stream:
                return await self._answer(stream, request), stream
        finally:
            self.waiting -= 1

    @contextlib.asynccontextmanager
    async def turn(self, find: Callable[[], Stream]) -> AsyncIterator[Stream]:
        """Wait for the turn of the stream that ``find`` finds, even if it was deleted and has come back meanwhile."""
        while True:
            stream = find()
            async with stream.turn:
                if self.streams.get(stream.key) is stream:
                    yield stream
                    return

    async def _answer(self, stream: Stream, request: InferRequest) -> Array:
        self._check_sequence(stream, request)
        pair = await self.open(stream, fresh=request.start)
        images = torch.from_numpy(request.images.copy())  # also kept until it is learned from
        if request.wait and pair.learns:
            probs = await asyncio.wrap_future(
                stream.strand.submit(functools.partial(self._learn, stream, pair, images))
            )
        else:
            probs = await self._loop.run_in_executor(self._answering, pair.answer, images)
            self.ownership.check()
            if pair.learns:
                self._learn_later(stream, pair, images)
            else:
                stream.step, stream.unsaved = pair.learner.step, stream.unsaved + 1
        answer: Array = probs.float().numpy()
        stream.started, stream.used = True, time.monotonic()
        stream.counts.requests += 1
        stream.counts.images += len(answer)
        stream.history.answered(time.time(), answer, request.images[0] if self.settings.show_frames else None)
        self.metrics.images.labels(stream.model.name).inc(len(answer))
        if request.end:
            await self._end(stream)
        return answer

    def _check_sequence(self, stream: Stream, request: InferRequest) -> None:
        if self.settings.strict_sequences and not request.start and not stream.started:
            self._forget_if_new(stream)
            raise bad(
                f"inference request for sequence {stream.name} to model '{stream.model.name}' must specify the START "
                "flag on the first request of the sequence"
            )

    def find_or_add(self, model: ServedModel, name: str) -> Stream:
        """The stream, known from now on."""
        stream = self.streams.get((model.name, name))
        if stream is None:
            if len(self.streams) >= self.settings.max_streams:
                raise Refused(429, f"there are {len(self.streams)} streams, the most this server has")
            if self.settings.disk_mb and self.stored_bytes > self.settings.disk_mb << 20:
                raise Refused(507, f"the state folder has reached its limit of {self.settings.disk_mb} MB")
            stream = self.streams[model.name, name] = Stream(model, name, Strand(self.workers))
        return stream

    def _forget_if_new(self, stream: Stream) -> None:
        """Do not keep a stream that never began."""
        if not stream.is_live and not stream.counts.requests and self.store.find(*stream.key) is None:
            self.streams.pop(stream.key, None)

    # In memory and back ----------------------------------------------------------------------------------------

    async def open(self, stream: Stream, *, fresh: bool = False) -> Pair:
        """The adapters of a stream, from disk if it is not in memory; ``fresh`` begins it anew. Needs its turn."""
        self.ownership.check()
        if stream.is_live and stream.lapses != self.ownership.lapses:
            await self._verify(stream)
        if stream.pair is None:
            return await self._bring_in(stream, fresh)
        if fresh:
            await self._begin_anew(stream)
        return stream.pair

    async def _bring_in(self, stream: Stream, fresh: bool) -> Pair:
        try:
            await self._make_room()
            stream.epoch = await self._claim(stream)
            stream.lapses = self.ownership.lapses
            pair, restored = await self._in_files(functools.partial(load_pair, self.store, stream, fresh))
        except Refused:
            self._forget_if_new(stream)
            raise
        stream.pair, stream.bytes = pair, pair.nbytes()
        stream.step = stream.saved_step = pair.learner.step
        stream.unsaved, stream.saved = 0, time.monotonic()
        kind, counter = ("restored", self.metrics.restored) if restored else ("started", self.metrics.started)
        counter.labels(stream.model.name).inc()
        self._note(kind, stream, step=stream.step, epoch=stream.epoch)
        return pair

    async def _claim(self, stream: Stream) -> int:
        """Own the stream; if its owner has just died, wait until its lease has run out."""
        deadline = time.monotonic() + 2 * self.settings.lease_seconds
        while True:
            try:
                return await self._in_files(functools.partial(self.ownership.claim, *stream.key))
            except Refused:
                if self.draining or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)

    async def _begin_anew(self, stream: Stream) -> None:
        dropped = stream.strand.discard()
        self.metrics.dropped.labels(stream.model.name).inc(dropped)
        await self._on_strand(stream, self._reset)
        self.metrics.started.labels(stream.model.name).inc()
        self._note("reset", stream, dropped=dropped)

    def _reset(self, stream: Stream) -> None:
        assert stream.pair is not None
        stream.pair.reset()
        stream.step, stream.unsaved, stream.info = 0, 1, {}
        if self.store.checkpoint(*stream.key) is not None:  # a crash must not bring the past back
            self._save(stream)

    async def _verify(self, stream: Stream) -> None:
        """After a lost lease: keep what is still owned, forget what has gone to another server."""
        lapses = self.ownership.lapses
        if await self._in_files(functools.partial(self.store.owns, *stream.key, stream.epoch)):
            stream.lapses = lapses
        else:
            stream.strand.discard()
            await self._on_strand(stream, _forget)
            self._note("lost", stream, level=logging.WARNING, epoch=stream.epoch)

    async def _make_room(self) -> None:
        """Send the streams that were used least recently to disk until one more fits."""
        async with self._room:
            while True:
                live = [stream for stream in self.streams.values() if stream.is_live]
                used = sum(stream.bytes for stream in live)
                largest = max((stream.bytes for stream in live), default=0)
                if len(live) < self.settings.max_live and (used + largest <= self.settings.memory_mb << 20 or not live):
                    return
                oldest = min(live, key=lambda stream: stream.used)
                async with oldest.turn:
                    if oldest.is_live and not await self.evict(oldest):
                        raise later("no stream can be saved to make room for another", 10)

    async def evict(self, stream: Stream) -> bool:
        """Send a stream to disk; False, and it stays, if it cannot be saved. Needs its turn."""
        if not await self._on_strand(stream, self._save):
            return False
        await self._on_strand(stream, _forget)
        self.metrics.evicted.labels(stream.model.name).inc()
        self._note("evicted", stream, level=logging.DEBUG, step=stream.step)
        return True

    async def _end(self, stream: Stream) -> None:
        """The sequence is over: save the stream and free its memory."""
        stream.started = False
        if await self.evict(stream):
            await self._in_files(functools.partial(self.store.describe, *stream.key, ended=True))
            await self._in_files(functools.partial(self.store.release, *stream.key, stream.epoch))
        self._note("ended", stream, step=stream.step)

    # Learning --------------------------------------------------------------------------------------------------

    def _learn_later(self, stream: Stream, pair: Pair, images: Tensor) -> None:
        if len(stream.strand) >= self.settings.queue:
            stream.counts.skipped += 1
            stream.history.skipped(time.time())
            self.metrics.skipped.labels(stream.model.name).inc()
            return
        job = functools.partial(self._learn, stream, pair, images)
        stream.strand.submit(job, discardable=True).add_done_callback(functools.partial(self._report, stream))

    def _learn(self, stream: Stream, pair: Pair, images: Tensor) -> Tensor:
        """One step of the learner, on its strand."""
        began = time.perf_counter()
        probs = pair.learn(images)
        self.metrics.adaptation.labels(stream.model.name).observe(time.perf_counter() - began)
        stream.unsaved += 1
        self._loop.call_soon_threadsafe(self._learned, stream, pair.learner.last)
        if stream.unsaved >= self.settings.checkpoint_steps:
            self._save(stream)
        return probs

    def _learned(self, stream: Stream, info: StepInfo | None) -> None:
        before = stream.info
        values = stream.learned(info, len(stream.strand))
        self.metrics.adapted.labels(stream.model.name).inc()
        for event, fields in guard_events(before, values):
            self.metrics.guard.labels(stream.model.name, event).inc()
            self._note(f"guard_{event}", stream, level=logging.WARNING, step=stream.step, **fields)

    def _report(self, stream: Stream, future: "Future[Tensor]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self._loop.call_soon_threadsafe(self._failed, stream, error)

    def _failed(self, stream: Stream, error: BaseException) -> None:
        stream.counts.failed += 1
        self.metrics.failed.labels(stream.model.name).inc()
        self._note("adaptation_failed", stream, level=logging.ERROR, error=f"{type(error).__name__}: {error}")

    def _save(self, stream: Stream) -> bool:
        """Write a checkpoint if anything is new, on the stream's strand; False if that fails."""
        if stream.pair is None or (not stream.unsaved and self.store.checkpoint(*stream.key) is not None):
            return True
        began = time.perf_counter()
        try:
            self.ownership.check()
            self.store.save(*stream.key, stream.epoch, stream.pair.learner)
        except (OSError, Refused) as error:
            self.metrics.unsaved.labels(stream.model.name).inc()
            self._note("checkpoint_failed", stream, level=logging.ERROR, error=str(error))
            return False
        finally:
            stream.saved = time.monotonic()
        stream.unsaved, stream.saved_step = 0, stream.pair.learner.step
        stream.bytes = stream.pair.nbytes()
        self.metrics.saved.labels(stream.model.name).inc()
        self.metrics.saving.labels(stream.model.name).observe(time.perf_counter() - began)
        return True

    def save_soon(self, stream: Stream) -> None:
        """Write a checkpoint when the learner has done what is waiting."""
        stream.saved = time.monotonic()
        stream.strand.submit(functools.partial(self._save, stream))

    # Threads ---------------------------------------------------------------------------------------------------

    async def _on_strand(self, stream: Stream, job: Callable[[Stream], Result]) -> Result:
        return await asyncio.wrap_future(stream.strand.submit(functools.partial(job, stream)))

    async def _in_files(self, job: Callable[[], Result]) -> Result:
        return await self._loop.run_in_executor(self._files, job)

    def _note(self, event: str, stream: Stream, *, level: int = logging.INFO, **fields: object) -> None:
        model, name = stream.key
        self.events.note(event, level=level, model=model, stream=name, server=self.ownership.server, **fields)


def _forget(stream: Stream) -> None:
    stream.pair = None
    stream.bytes = 0
    stream.history.frames.clear()


def _nothing() -> None:
    """Wait for what is before it."""
