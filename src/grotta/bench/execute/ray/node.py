"""What a node of a Ray cluster does: say what data it lacks, receive it, and run cells."""

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grotta._errors import one_line
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Event, Failure, Finished
from grotta.bench.execute.ray.node_data import Extract, SentInputs
from grotta.bench.execute.reporting import run_and_report
from grotta.bench.process import tune_allocator
from grotta.bench.store.results import RECORDS, RESULT, SPEC, TIMING, CellResult, cell_directory, result_mark

FILES = (SPEC, RECORDS, TIMING, RESULT)  # the result last: it is what makes a cell finished


@dataclass(frozen=True)
class Delivery:
    """A finished cell and its files."""

    result: CellResult
    files: dict[str, bytes]


@dataclass(frozen=True)
class Lacking:
    """A node got a cell without having its data: it joined late, or its cache was emptied."""

    node: str


class Mailbox:
    """Events on their way from the nodes to the driver; an actor on the driver's node."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put(self, event: Event) -> None:
        self.events.append(event)

    def take(self) -> list[Event]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events


def scratch_name(out: Path) -> str:
    """The prefix of the nodes' directories for the cells of a run; a resumed run has the same one."""
    run = f"{platform.node()}:{out.resolve()}".encode()
    return f"grotta-{hashlib.blake2b(run, digest_size=8).hexdigest()}"


def lacking_on_node(extracts: Sequence[Extract]) -> list[Extract]:
    """The data that a node does not have."""
    return [extract for extract in extracts if extract.place() is None]


def receive_on_node(extract: Extract, parts: Sequence[Any]) -> str:
    """Put data into a node's cache; returns why it cannot, or ``""``."""
    import ray

    try:
        extract.receive(ray.get(part) for part in parts)
    except OSError as error:
        return one_line(error)
    return ""


def run_on_node(task: CellTask, scratch: str, mailbox: Any) -> Delivery | Failure | Lacking:
    """What a node does with a cell: run it in a directory of its own and return its files, or why there are none.

    The directory outlives the worker and the driver, so that a cell is resumed if it comes back to this node.
    """
    if isinstance(task.open_inputs, SentInputs) and lacking_on_node(task.open_inputs.extracts):
        import ray

        return Lacking(ray.get_runtime_context().get_node_id())
    tune_allocator()
    ends: list[Finished | Failure] = []

    def send(event: Event) -> None:
        if isinstance(event, Finished | Failure):
            ends.append(event)
        else:
            mailbox.put.remote(event)

    out = Path(tempfile.gettempdir()) / f"{scratch}-{task.spec.id}"
    directory = cell_directory(out, task.spec)
    # a result that an earlier driver left here was never checked against the current data
    here = replace(task, out=out, data_root=None, wait=True, mark=result_mark(directory))
    run_and_report(here, send)
    [end] = ends
    if isinstance(end, Finished):
        files = {name: (directory / name).read_bytes() for name in FILES}
        outcome: Delivery | Failure = Delivery(end.result, files)
    else:
        outcome = end
    shutil.rmtree(out, ignore_errors=True)
    return outcome
