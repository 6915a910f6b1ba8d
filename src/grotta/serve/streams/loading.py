"""A stream's adapters, new or from its last checkpoint."""

from grotta.methods.checkpoint import load, read
from grotta.serve.catalogue import ServedModel
from grotta.serve.errors import Refused
from grotta.serve.state.store import StreamStore
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.pair import Pair
from grotta.serve.streams.stream import Stream


def build_pair(model: ServedModel, gate: Gate) -> Pair:
    """Adapters of a new stream: most of the time that it takes to bring in a stream, whatever it is filled with."""
    return Pair(model.adapter(), gate)


def fill_pair(store: StreamStore, stream: Stream, pair: Pair, fresh: bool, gate: Gate) -> tuple[Pair, bool]:
    """``pair`` with the last checkpoint in it, and True; or as it is, and its first checkpoint replaces what was there.

    A stream that was saved with other options keeps those: it gets a pair of its own.
    """
    path = store.checkpoint(*stream.key)
    if path is None or fresh:
        if path is not None:
            store.save(*stream.key, stream.epoch, pair.learner)
            store.describe(*stream.key, ended=False)
        return pair, False
    try:
        saved = read(path, stream.model.network)
        check_method(saved.method, stream.model)
        if saved.arguments == pair.learner.arguments:
            pair.restore(saved.state)
        else:
            pair = Pair(load(path, stream.model.network), gate)
    except (ValueError, TypeError, OSError) as error:
        raise Refused(409, f"the saved state of stream {stream.name!r} cannot be used: {error}") from error
    return pair, True


def check_method(method: str, model: ServedModel) -> None:
    """Refuse a state of another method than the model is served with."""
    if method != model.settings.method:
        raise Refused(
            409, f"the state is one of the method {method!r}, but {model.name} is served by {model.settings.method!r}"
        )
