"""A stream's adapters, new or from its last checkpoint."""

from grotta.methods.base import Adapter
from grotta.methods.checkpoint import load
from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused
from grotta.serve.state.store import StreamStore
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.stream import Stream


def load_pair(store: StreamStore, stream: Stream, fresh: bool, gate: Gate) -> tuple[Pair, bool]:
    """The pair from the last checkpoint, and True; or a new one, whose first checkpoint replaces what was there."""
    path = store.checkpoint(*stream.key)
    if path is None or fresh:
        pair = Pair(stream.model.adapter(), gate)
        if path is not None:
            store.save(*stream.key, stream.epoch, pair.learner)
            store.describe(*stream.key, ended=False)
        return pair, False
    try:
        adapter = load(path, stream.model.network)
    except (ValueError, TypeError, OSError) as error:
        raise Refused(409, f"the saved state of stream {stream.name!r} cannot be used: {error}") from error
    check_method(adapter, stream.model)
    return Pair(adapter, gate), True


def check_method(adapter: Adapter, model: ServedModel) -> None:
    """Refuse an adapter of another method than the model is served with."""
    if adapter.name != model.settings.method:
        raise Refused(
            409,
            f"the state is one of the method {adapter.name!r}, but {model.name} is served by {model.settings.method!r}",
        )
