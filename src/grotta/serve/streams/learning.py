"""What a stream learns from, after it has answered."""

import asyncio
import functools
import logging
import time
from concurrent.futures import Future

from torch import Tensor

from grotta.methods.step_info import StepInfo
from grotta.serve.logs import Events
from grotta.serve.metrics import Metrics
from grotta.serve.settings import Settings
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.guard import guard_events
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.saving import Saver
from grotta.serve.streams.stream import Stream


class Learning:
    """Steps of learners, in order of arrival for each stream, with a bounded queue."""

    def __init__(self, settings: Settings, metrics: Metrics, events: Events, saver: Saver, gate: Gate) -> None:
        self._settings, self._metrics, self._events, self._saver, self._gate = settings, metrics, events, saver, gate
        self._loop = asyncio.get_running_loop()

    async def now(self, stream: Stream, pair: Pair, images: Tensor) -> Tensor:
        """Learn from ``images`` after what came before them; the learner's own probabilities."""
        return await asyncio.wrap_future(stream.strand.submit(functools.partial(self._learn, stream, pair, images)))

    def later(self, stream: Stream, pair: Pair, images: Tensor) -> None:
        """Learn from ``images`` when there is time; a full queue skips and counts them."""
        if len(stream.strand) >= self._settings.queue:
            stream.counts.skipped += 1
            stream.history.skipped(time.time())
            self._metrics.skipped.labels(stream.model.name).inc()
            return
        job = functools.partial(self._learn, stream, pair, images)
        stream.strand.submit(job, discardable=True).add_done_callback(functools.partial(self._report, stream))

    def forget_waiting(self, stream: Stream) -> int:
        """Drop what waits to be learned; returns how many batches."""
        dropped = stream.strand.discard()
        self._metrics.dropped.labels(stream.model.name).inc(dropped)
        return dropped

    def _learn(self, stream: Stream, pair: Pair, images: Tensor) -> Tensor:
        """One step of the learner, on its strand."""
        began = time.perf_counter()
        self._gate.begin_step()
        probs = pair.learn(images)
        self._metrics.adaptation.labels(stream.model.name).observe(time.perf_counter() - began)
        stream.unsaved += 1
        self._loop.call_soon_threadsafe(self._learned, stream, pair.learner.last)
        if stream.unsaved >= self._settings.checkpoint_steps:
            self._saver.save(stream)
        return probs

    def _learned(self, stream: Stream, info: StepInfo | None) -> None:
        before = stream.info
        values = stream.learned(info, len(stream.strand))
        self._metrics.adapted.labels(stream.model.name).inc()
        for event, fields in guard_events(before, values):
            self._metrics.guard.labels(stream.model.name, event).inc()
            self._events.of(stream.key, f"guard_{event}", level=logging.WARNING, step=stream.step, **fields)

    def _report(self, stream: Stream, future: "Future[Tensor]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self._loop.call_soon_threadsafe(self._failed, stream, error)

    def _failed(self, stream: Stream, error: BaseException) -> None:
        stream.counts.failed += 1
        self._metrics.failed.labels(stream.model.name).inc()
        self._events.of(stream.key, "adaptation_failed", level=logging.ERROR, error=f"{type(error).__name__}: {error}")
