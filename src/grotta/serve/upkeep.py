"""What a server does from time to time: checkpoints that are due, idle streams, the size of the state folder."""

import asyncio
import logging
import time

from grotta.serve.logs import logger
from grotta.serve.service import Service
from grotta.serve.streams.stream import Stream

_EVERY = 0.5
_SIZE_EVERY = 10.0


async def keep_up(service: Service) -> None:
    """Run until cancelled."""
    measured = time.monotonic()
    while True:
        await asyncio.sleep(_EVERY)
        try:
            now = time.monotonic()
            for stream in list(service.streams.values()):
                if stream.is_live:
                    await _attend(service, stream, now)
            if now - measured > _SIZE_EVERY:
                measured = now
                service.stored_bytes = await asyncio.to_thread(service.store.size)
        except Exception:  # the next round may succeed; this task must not end
            logger.log(logging.ERROR, "upkeep_failed", exc_info=True)


async def _attend(service: Service, stream: Stream, now: float) -> None:
    settings = service.settings
    if stream.unsaved and now - stream.saved >= settings.checkpoint_seconds:
        service.saver.save_soon(stream)
    elif now - stream.used >= settings.idle_seconds and not stream.turn.locked():
        async with stream.turn:
            if stream.is_live and time.monotonic() - stream.used >= settings.idle_seconds:
                await service.keeper.evict(stream)
