"""Streams come into memory when they are used, and go to disk when others need the room."""

import asyncio
import functools
import logging
import time
from collections.abc import Mapping

from grotta.serve.errors import later
from grotta.serve.logs import Events
from grotta.serve.metrics import Metrics
from grotta.serve.settings import Settings
from grotta.serve.state.ownership import Ownership
from grotta.serve.state.store import OwnedElsewhere
from grotta.serve.streams.learning import Learning
from grotta.serve.streams.loading import build_pair, fill_pair
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.saving import Saver
from grotta.serve.streams.stream import Stream
from grotta.serve.streams.threads import Threads

_LOOKS = 5  # in a second, at a server that may be dead


class Keeper:
    """Owns streams, loads them, and makes room; whoever calls it for a stream holds the stream's turn."""

    def __init__(
        self,
        settings: Settings,
        streams: Mapping[tuple[str, str], Stream],
        ownership: Ownership,
        metrics: Metrics,
        events: Events,
        saver: Saver,
        learning: Learning,
        threads: Threads,
    ) -> None:
        self._settings, self._streams, self._ownership = settings, streams, ownership
        self._metrics, self._events = metrics, events
        self._saver, self._learning, self._threads = saver, learning, threads
        self._room = asyncio.Lock()
        self._coming = 0  # streams that have a place in memory and are on their way to it
        self._watched: dict[str, asyncio.Task[None]] = {}  # servers that streams wait for
        self.patient = True  # whether to wait for streams whose owner may be dead

    async def open(self, stream: Stream, *, fresh: bool = False) -> Pair:
        """The adapters of a stream, from disk if it is not in memory; ``fresh`` starts it over."""
        self._ownership.check()
        if stream.is_live and stream.lapses != self._ownership.lapses:
            await self._verify(stream)
        if stream.pair is None:
            return await self._bring_in(stream, fresh)
        if fresh:
            await self._begin_anew(stream)
        return stream.pair

    async def evict(self, stream: Stream) -> bool:
        """Send a stream to disk; False, and it stays, if it cannot be saved."""
        if not await self._threads.on_strand(stream, self._saver.save):
            return False
        await self._threads.on_strand(stream, Stream.leave_memory)
        self._metrics.evicted.labels(stream.model.name).inc()
        self._events.of(stream.key, "evicted", level=logging.DEBUG, step=stream.step)
        return True

    async def end(self, stream: Stream) -> None:
        """The sequence is over: save the stream and free its memory."""
        store = self._ownership.store
        stream.started = False
        if await self.evict(stream):
            await self._threads.files(functools.partial(store.describe, *stream.key, ended=True))
            await self._threads.files(functools.partial(store.release, *stream.key, stream.epoch))
        self._events.of(stream.key, "ended", step=stream.step)

    async def _bring_in(self, stream: Stream, fresh: bool) -> Pair:
        """Claim a stream and load it. Where there is room, its adapters are made while its last owner's lease runs out.

        So a hundred streams of a server that died need not be made, one after the other, after they can be had.
        """
        building = None
        if reserved := self._has_room():
            self._coming += 1
            building = asyncio.ensure_future(self._build(stream))
        try:
            stream.epoch = await self._claim(stream)
            stream.lapses = self._ownership.lapses
            if not reserved:
                await self._reserve_room()
                reserved = True
            made = await (building or self._build(stream))
            fill = functools.partial(
                fill_pair, self._ownership.store, stream, made, fresh=fresh, gate=self._threads.gate
            )
            pair, restored = await self._threads.files(fill)
            stream.pair, stream.bytes = pair, pair.nbytes()
        finally:
            self._coming -= reserved
            if building is not None:
                building.cancel()
        stream.step = stream.saved_step = pair.learner.step
        stream.unsaved, stream.saved = 0, time.monotonic()
        kind, counter = ("restored", self._metrics.restored) if restored else ("started", self._metrics.started)
        counter.labels(stream.model.name).inc()
        self._events.of(stream.key, kind, step=stream.step, epoch=stream.epoch)
        return pair

    async def _build(self, stream: Stream) -> Pair:
        return await self._threads.build(functools.partial(build_pair, stream.model, self._threads.gate))

    async def _claim(self, stream: Stream) -> int:
        """Own the stream; if its owner has just died, wait until its lease has run out."""
        deadline = time.monotonic() + 2 * self._settings.lease_seconds
        while True:
            try:
                return await self._threads.files(functools.partial(self._ownership.claim, *stream.key))
            except OwnedElsewhere as error:
                if not self.patient or time.monotonic() > deadline:
                    raise later("the stream is with another server, which does not give it up yet") from error
                await self._until_gone(error.server)

    async def _until_gone(self, server: str) -> None:
        """Wait until ``server`` is dead, or for a second: it may have given the stream up.

        All streams that wait for a server share one look at it, or a hundred of them would keep this one from work.
        """
        if (watch := self._watched.get(server)) is None:
            watch = self._watched[server] = asyncio.ensure_future(self._watch(server))
            watch.add_done_callback(lambda _: self._watched.pop(server, None))
        await asyncio.shield(watch)

    async def _watch(self, server: str) -> None:
        for _ in range(_LOOKS):
            await asyncio.sleep(1 / _LOOKS)
            if not self.patient or await self._threads.files(functools.partial(self._ownership.is_gone, server)):
                return

    async def _begin_anew(self, stream: Stream) -> None:
        dropped = self._learning.forget_waiting(stream)
        await self._threads.on_strand(stream, self._reset)
        self._metrics.started.labels(stream.model.name).inc()
        self._events.of(stream.key, "reset", dropped=dropped)

    def _reset(self, stream: Stream) -> None:
        assert stream.pair is not None
        stream.pair.reset()
        stream.step, stream.unsaved, stream.info = 0, 1, {}
        if self._ownership.store.checkpoint(*stream.key) is not None:  # a crash must not bring the past back
            self._saver.save(stream)

    async def _verify(self, stream: Stream) -> None:
        """After a lost lease: keep what is still owned, forget what has gone to another server."""
        lapses = self._ownership.lapses
        owns = functools.partial(self._ownership.store.owns, *stream.key, stream.epoch)
        if await self._threads.files(owns):
            stream.lapses = lapses
            return
        stream.strand.discard()
        await self._threads.on_strand(stream, Stream.leave_memory)
        self._events.of(stream.key, "lost", level=logging.WARNING, epoch=stream.epoch)

    async def _reserve_room(self) -> None:
        """Send the streams that were used least recently to disk until one more fits, and keep its place.

        Only those whose turn is free: a stream in use may itself be waiting for room.
        """
        async with self._room:
            while not self._has_room():
                idle = [stream for stream in self._streams.values() if stream.is_live and not stream.turn.locked()]
                if not idle:
                    await asyncio.sleep(0.02)
                    continue
                oldest = min(idle, key=lambda stream: stream.used)
                async with oldest.turn:
                    if oldest.is_live and not await self.evict(oldest):
                        raise later("no stream can be saved to make room for another", 10)
            self._coming += 1

    def _has_room(self) -> bool:
        live = [stream.bytes for stream in self._streams.values() if stream.is_live]
        count = len(live) + self._coming
        fits = sum(live) + (1 + self._coming) * max(live, default=0) <= self._settings.memory_mb << 20
        return count < self._settings.max_live and (fits or not count)
