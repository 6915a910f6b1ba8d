"""Requests and their streams, without HTTP: who is answered, in which order, by which stream."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable

import torch

from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused, bad, later
from grotta.serve.logs import Events
from grotta.serve.metrics import Metrics
from grotta.serve.names import DEFAULT_STREAM
from grotta.serve.protocol.request import InferRequest
from grotta.serve.protocol.tensors import Array
from grotta.serve.settings import Settings
from grotta.serve.state.ownership import Ownership
from grotta.serve.state.store import StreamStore
from grotta.serve.streams.keeping import Keeper
from grotta.serve.streams.learning import Learning
from grotta.serve.streams.saving import Saver
from grotta.serve.streams.stream import Stream
from grotta.serve.streams.threads import Threads


class Service:
    """All streams of all models in one process.

    Requests run on the event loop and hold a stream's turn; networks run in threads. Answers have threads of their own,
    learners have others, of lower priority.
    """

    threads: Threads
    saver: Saver
    learning: Learning
    keeper: Keeper

    def __init__(self, settings: Settings, models: dict[str, ServedModel]) -> None:
        self.settings = settings
        self.models = models
        self.metrics = Metrics()
        self.ownership = Ownership(settings)
        self.events = Events(self.ownership.server)
        self.streams: dict[tuple[str, str], Stream] = {}
        self.waiting = 0
        self.draining = False
        self.stored_bytes = 0

    @property
    def store(self) -> StreamStore:
        """Where streams are kept."""
        return self.ownership.store

    async def start(self) -> None:
        """Hold the state folder, and know what is in it."""
        self.ownership.take()
        self.threads = Threads(self.settings.answer_threads, self.settings.adapt_threads)
        self.saver = Saver(self.ownership, self.metrics, self.events)
        counted = self.settings, self.metrics, self.events
        self.learning = Learning(*counted, self.saver, self.threads.gate)
        self.keeper = Keeper(
            self.settings,
            self.streams,
            self.ownership,
            self.metrics,
            self.events,
            self.saver,
            self.learning,
            self.threads,
        )
        for model in self.models.values():
            for stored in self.store.streams(model.name):
                stream = Stream(
                    model, stored.name, self.threads.strand(), started=not stored.ended, created=stored.created
                )
                stream.step = stream.saved_step = self.store.step(*stream.key)
                self.streams[stream.key] = stream
        self.stored_bytes = self.store.size()
        methods = {model.name: f"{model.settings.method} ({model.preset})" for model in self.models.values()}
        self.events.note("server_started", **self.events.where, models=methods, streams=len(self.streams))

    async def stop(self) -> None:
        """Learn what is waiting as long as there is time, save every stream, and let the folder go."""
        self.draining, self.keeper.patient = True, False
        live = [stream for stream in self.streams.values() if stream.is_live]
        if live:
            learned = [asyncio.ensure_future(self.threads.on_strand(stream, _nothing)) for stream in live]
            await asyncio.wait(learned, timeout=self.settings.drain_seconds)
        dropped = sum(stream.strand.discard() for stream in live)
        saved = await asyncio.gather(*(self.threads.on_strand(stream, self.saver.save) for stream in live))
        await self.threads.stop()
        self.ownership.give_up()
        self.events.note("server_stopped", saved=sum(saved), unlearned=dropped)

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
        """Wait for the turn of the stream that ``find`` finds, even if it was deleted and has come back meanwhile.

        A stream that a refused request would have begun is not kept.
        """
        while True:
            stream = find()
            async with stream.turn:
                if self.streams.get(stream.key) is stream:
                    try:
                        yield stream
                    except Refused:
                        self._forget_if_new(stream)
                        raise
                    return

    def find_or_add(self, model: ServedModel, name: str) -> Stream:
        """The stream, known from now on."""
        stream = self.streams.get((model.name, name))
        if stream is None:
            if len(self.streams) >= self.settings.max_streams:
                raise Refused(429, f"there are {len(self.streams)} streams, the most this server has")
            if self.settings.disk_mb and self.stored_bytes > self.settings.disk_mb << 20:
                raise Refused(507, f"the state folder has reached its limit of {self.settings.disk_mb} MB")
            stream = self.streams[model.name, name] = Stream(model, name, self.threads.strand())
        return stream

    async def _answer(self, stream: Stream, request: InferRequest) -> Array:
        self._check_sequence(stream, request)
        pair = await self.keeper.open(stream, fresh=request.start)
        images = torch.from_numpy(request.images.copy())  # also kept until it is learned from
        if request.wait and pair.learns:
            probs = await self.learning.now(stream, pair, images)
        else:
            probs = await self.threads.answer(functools.partial(pair.answer, images))
            self.ownership.check()
            if pair.learns:
                self.learning.later(stream, pair, images)
            else:
                stream.step, stream.unsaved = pair.learner.step, stream.unsaved + 1
        answer: Array = probs.float().numpy()
        stream.answered(answer, request.images[0] if self.settings.show_frames else None)
        self.metrics.images.labels(stream.model.name).inc(len(answer))
        if request.end:
            await self.keeper.end(stream)
        return answer

    def _check_sequence(self, stream: Stream, request: InferRequest) -> None:
        if self.settings.strict_sequences and not request.start and not stream.started:
            raise bad(
                f"inference request for sequence {stream.name} to model '{stream.model.name}' must specify the START "
                "flag on the first request of the sequence"
            )

    def _forget_if_new(self, stream: Stream) -> None:
        if not stream.is_live and not stream.counts.requests and self.store.find(*stream.key) is None:
            self.streams.pop(stream.key, None)


def _nothing(_: Stream) -> None:
    """Wait for what is before it."""
