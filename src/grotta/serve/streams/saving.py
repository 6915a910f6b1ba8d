"""Checkpoints of streams, written on their strands."""

import functools
import logging
import time

from grotta.serve.errors import Refused
from grotta.serve.logs import Events
from grotta.serve.metrics import Metrics
from grotta.serve.state.ownership import Ownership
from grotta.serve.streams.stream import Stream


class Saver:
    """Writes what is new of a stream to its place in the state folder, and counts it."""

    def __init__(self, ownership: Ownership, metrics: Metrics, events: Events) -> None:
        self._ownership, self._metrics, self._events = ownership, metrics, events

    def save(self, stream: Stream) -> bool:
        """Write a checkpoint if anything is new, on the stream's strand; False if that fails."""
        store = self._ownership.store
        if stream.pair is None or (not stream.unsaved and store.checkpoint(*stream.key) is not None):
            return True
        began = time.perf_counter()
        try:
            self._ownership.check()
            store.save(*stream.key, stream.epoch, stream.pair.learner)
        except (OSError, Refused) as error:
            self._metrics.unsaved.labels(stream.model.name).inc()
            self._events.of(stream.key, "checkpoint_failed", level=logging.ERROR, error=str(error))
            return False
        finally:
            stream.saved = time.monotonic()
        stream.unsaved, stream.saved_step = 0, stream.pair.learner.step
        stream.bytes = stream.pair.nbytes()
        self._metrics.saved.labels(stream.model.name).inc()
        self._metrics.saving.labels(stream.model.name).observe(time.perf_counter() - began)
        return True

    def save_soon(self, stream: Stream) -> None:
        """Write a checkpoint when the learner has done what is waiting."""
        stream.saved = time.monotonic()
        stream.strand.submit(functools.partial(self.save, stream))
