"""What a node of a Ray cluster does: say what data it lacks, receive it, and run cells."""

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grotta.bench.events import Event, Failure, Finished
from grotta.bench.execute.process import tune_allocator
from grotta.bench.execute.shipping import Extract
from grotta.bench.execute.task import CellTask, attempt, one_line
from grotta.bench.store.results import RECORDS, RESULT, SPEC, TIMING, cell_directory

FILES = (SPEC, RECORDS, TIMING, RESULT)  # the result last: it is what makes a cell finished
Files = dict[str, bytes]


@dataclass(frozen=True)
class Lacking:
    """A cell came to a node that has not got its data: one that joined late, or whose cache was emptied."""

    node: str


class Mailbox:
    """Events on their way from the nodes to the driver; lives as an actor beside the driver."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put(self, event: Event) -> None:
        """Leave an event."""
        self.events.append(event)

    def take(self) -> list[Event]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events


def scratch_name(out: Path) -> str:
    """What the nodes' directories for the cells of a run begin with: the same for whoever goes on with that run."""
    run = f"{platform.node()}:{out.resolve()}".encode()
    return f"grotta-{hashlib.blake2b(run, digest_size=8).hexdigest()}"


def lacking_on_node(extracts: Sequence[Extract]) -> list[Extract]:
    """What of the data a node does not have."""
    return [extract for extract in extracts if extract.place() is None]


def receive_on_node(extract: Extract, parts: Sequence[Any]) -> str:
    """Let a node keep data; gives why it cannot, or ``""``."""
    import ray

    try:
        extract.receive(ray.get(part) for part in parts)
    except OSError as error:
        return one_line(error)
    return ""


def run_on_node(task: CellTask, scratch: str, mailbox: Any) -> Files | Failure | Lacking:
    """What a node does with a cell: run it in a directory of its own and give its files, or why there are none.

    The directory outlives the worker and the driver, so that a cell goes on if it comes back to this node.
    """
    if task.supply and lacking_on_node(task.supply.extracts):
        import ray

        return Lacking(ray.get_runtime_context().get_node_id())
    tune_allocator()
    ends: list[Event] = []

    def send(event: Event) -> None:
        if isinstance(event, Finished | Failure):
            ends.append(event)
        else:
            mailbox.put.remote(event)

    out = Path(tempfile.gettempdir()) / f"{scratch}-{task.spec.id}"
    attempt(replace(task, out=out, data_root=None if task.supply else task.data_root, wait=True), send)
    [end] = ends
    directory = cell_directory(out, task.spec)
    files = {} if isinstance(end, Failure) else {name: (directory / name).read_bytes() for name in FILES}
    shutil.rmtree(out, ignore_errors=True)
    return end if isinstance(end, Failure) else files
