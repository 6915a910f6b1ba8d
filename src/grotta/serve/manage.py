"""What an operator does with streams: list, inspect, reset, export, import, delete, hand over."""

import asyncio
import functools
import tempfile
import time
from pathlib import Path
from typing import Any

from grotta.methods.checkpoint import load
from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused
from grotta.serve.service import Service
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.loading import check_method
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.stream import Stream


def known(service: Service, model: ServedModel, name: str) -> Stream:
    """The stream ``name``, or 404."""
    stream = service.streams.get((model.name, name))
    if stream is None:
        raise Refused(404, f"model {model.name} has no stream {name!r}")
    return stream


def inspect(service: Service, stream: Stream) -> dict[str, Any]:
    """Everything known about a stream, without loading it."""
    saved = service.store.checkpoint(*stream.key)
    return {
        **stream.summary(),
        "method": stream.model.settings.method,
        "epoch": stream.epoch,
        "checkpoint_bytes": saved.stat().st_size if saved is not None and saved.exists() else None,
        "memory_bytes": stream.bytes,
        "last_step": stream.info,
        "events": service.events.latest(*stream.key)[:50],
    }


async def reset(service: Service, model: ServedModel, name: str) -> None:
    """Reset a stream, in memory and on disk."""
    async with service.turn(lambda: known(service, model, name)) as stream:
        await service.keeper.open(stream, fresh=True)
        stream.used = time.monotonic()


async def export(service: Service, model: ServedModel, name: str) -> bytes:
    """The state of a stream as one safetensors file, after all that it was sent before has been learned."""
    async with service.turn(lambda: known(service, model, name)) as stream:
        pair = await service.keeper.open(stream)
        return await asyncio.wrap_future(stream.strand.submit(functools.partial(_export, pair)))


def _export(pair: Pair) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        pair.learner.save(path)
        return path.read_bytes()


async def import_(service: Service, model: ServedModel, name: str, content: bytes) -> Stream:
    """Replace a stream by an exported one; a file that does not fit changes nothing."""
    pair = await asyncio.to_thread(_import, model, content, service.threads.gate)
    async with service.turn(lambda: service.find_or_add(model, name)) as stream:
        await service.keeper.open(stream)
        service.learning.forget_waiting(stream)
        await asyncio.wrap_future(stream.strand.submit(functools.partial(_replace, service, stream, pair)))
        stream.started, stream.used = True, time.monotonic()
    service.events.note("imported", model=model.name, stream=name, step=stream.step)
    return stream


def _import(model: ServedModel, content: bytes, gate: Gate) -> Pair:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.safetensors"
        path.write_bytes(content)
        try:
            adapter = load(path, model.network)
        except (ValueError, TypeError, KeyError) as error:
            reason = str(error).replace(str(path), "the file")
            raise Refused(400, f"the state cannot be imported: {reason}") from error
    check_method(adapter.name, model)
    if adapter.arguments != model.arguments:
        raise Refused(409, f"the state has options {adapter.arguments}, not those that {model.name} is served with")
    return Pair(adapter, gate)


def _replace(service: Service, stream: Stream, pair: Pair) -> None:
    stream.pair = pair
    stream.step, stream.unsaved, stream.info = pair.learner.step, 1, {}
    service.saver.save(stream)


async def delete(service: Service, model: ServedModel, name: str) -> None:
    """Forget a stream, in memory and on disk."""
    async with service.turn(lambda: known(service, model, name)) as stream:
        if service.ownership.membership is not None:
            await service.keeper.open(stream)  # only its owner may delete it
        service.learning.forget_waiting(stream)
        await asyncio.wrap_future(stream.strand.submit(functools.partial(_delete, service, stream)))
        service.streams.pop(stream.key, None)
    service.events.note("deleted", model=model.name, stream=name)


def _delete(service: Service, stream: Stream) -> None:
    stream.pair = None
    service.store.delete(*stream.key)


async def release(service: Service, model: ServedModel, name: str) -> None:
    """Save a stream and let another server have it, without learning what is still waiting."""
    if (model.name, name) not in service.streams:
        return
    async with service.turn(lambda: known(service, model, name)) as stream:
        if stream.is_live:
            service.learning.forget_waiting(stream)
            if not await service.keeper.evict(stream):
                raise Refused(503, "the stream cannot be saved", {"Retry-After": "5"})
        await asyncio.to_thread(service.store.release, *stream.key, stream.epoch)
        service.streams.pop(stream.key, None)
    service.metrics.handovers.labels(model.name).inc()
    service.events.note("handed_over", model=model.name, stream=name, step=stream.step, epoch=stream.epoch)


def score(stream: Stream, counts: dict[str, int]) -> None:
    """Note how many answers were right, as a client that knows the labels tells it."""
    stream.counts.correct += counts["correct"]
    stream.counts.scored += counts["total"]
    reference = counts.get("reference_correct", 0), counts.get("reference_total", 0)
    stream.counts.reference_correct += reference[0]
    stream.counts.reference_scored += reference[1]
    stream.history.scored(time.time(), (counts["correct"], counts["total"]), reference if reference[1] else None)
