"""Cells on a Ray cluster: the same cells, the same events, the same bytes as on one machine.

Nodes share nothing but the network. Each makes the data that it needs once, in its own cache; the files of a finished
cell come back as bytes and are written here. A cell whose worker or node dies runs again on another one.
"""

import contextlib
import hashlib
import logging
import platform
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grotta.bench import checkpoint
from grotta.bench.attempt import CellTask, PrepareTask, attempt, one_line, prepare, shared_data
from grotta.bench.events import Emit, Event, Failure, Finished, Retried, Waiting, Warned
from grotta.bench.lock import CellBusyError, cell_lock
from grotta.bench.present import Present
from grotta.bench.results import RECORDS, RESULT, SPEC, TIMING, CellResult, cell_directory, read_result, write_file
from grotta.bench.tune import tune_allocator

# Nodes of a cluster come and go; a cell that takes its worker down every time must end all the same.
ATTEMPTS = 4
POLL_SECONDS = 0.2
_FILES = (SPEC, RECORDS, TIMING, RESULT)  # the result last: it is what makes a cell finished

Files = dict[str, bytes]


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


def run_ray(tasks: Sequence[CellTask], *, workers: int | None, address: str | None, emit: Emit) -> None:
    """Run cells on the cluster at ``address``, or on one that is started on this machine."""
    with _cluster(address) as ray:
        Driver(ray, tasks, workers, emit).run()


class Driver:
    """Hands cells out, as many at once as the cluster has cores, and takes their files in."""

    def __init__(self, ray: Any, tasks: Sequence[CellTask], workers: int | None, emit: Emit) -> None:
        self.ray = ray
        self.tasks = tasks
        self.workers = workers
        self.emit = emit
        self.todo = deque((task, 1) for task in tasks)
        self.busy: set[str] = set()
        self.flying: dict[Any, tuple[CellTask, int, contextlib.ExitStack]] = {}
        context = ray.get_runtime_context()
        beside = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(context.get_node_id(), soft=False)
        self.mailbox = ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=beside).remote()

    def run(self) -> None:
        """Run all cells."""
        self._prepare()
        try:
            while self.todo or self.flying:
                self._hand_out()
                for reference in self._landed():
                    self._take_in(reference)
                self._pass_on()
        finally:
            for reference, (_, _, held) in self.flying.items():
                self.ray.cancel(reference, force=True)
                held.close()

    def _prepare(self) -> None:
        """Let every node make the data, before cells compete for it; one that joins later makes its own."""
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        function = self.ray.remote(prepare_on_node)
        pending = [
            function.options(max_retries=0, scheduling_strategy=affinity(node, soft=False)).remote(task, self.mailbox)
            for task in shared_data(self.tasks)
            for node in nodes
        ]
        while pending:
            _, pending = self.ray.wait(pending, timeout=POLL_SECONDS)
            self._pass_on()

    def _hand_out(self) -> None:
        """Start as many cells as there is room for; one that another run has goes to the end."""
        room = (self.workers or int(self.ray.cluster_resources().get("CPU", 1))) - len(self.flying)
        for _ in range(len(self.todo)):
            if room <= 0:
                return
            task, number = self.todo.popleft()
            held = contextlib.ExitStack()
            directory = cell_directory(task.out, task.spec)
            try:
                held.enter_context(cell_lock(directory, wait=False))
            except CellBusyError:
                if task.spec.id not in self.busy:
                    self.emit(Waiting(task.spec))
                self.busy.add(task.spec.id)
                self.todo.append((task, number))
                continue
            if (result := self._finished(task)) is not None:
                held.close()
                self.emit(Finished(task.spec, result, reused=True))
                continue
            self.flying[self._start(task)] = task, number, held
            room -= 1

    def _finished(self, task: CellTask) -> CellResult | None:
        """The result that another run has written, unless it is damaged or out of date, which is said."""
        directory = cell_directory(task.out, task.spec)
        try:
            result = read_result(directory)
            change = Present(task.data_root).change(result) if result else ""
            why = f"the cell in {directory} is out of date: {change}" if change else ""
        except ValueError as error:
            result, why = None, str(error)
        if why:
            self.emit(Warned(task.spec, f"{why}; it runs again"))
        return None if why else result

    def _start(self, task: CellTask) -> Any:
        gpus = 1 if task.device.startswith("cuda") else 0
        function = self.ray.remote(run_on_node)
        options = {"num_cpus": 1, "num_gpus": gpus, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        return function.options(**options).remote(task, scratch_name(task.out), self.mailbox)

    def _landed(self) -> list[Any]:
        if not self.flying:
            time.sleep(POLL_SECONDS if self.todo else 0)
            return []
        landed, _ = self.ray.wait(list(self.flying), num_returns=len(self.flying), timeout=POLL_SECONDS)
        return list(landed)

    def _take_in(self, reference: Any) -> None:
        """Write a finished cell down, report a failed one, and start again what died with its worker or node."""
        task, number, held = self.flying.pop(reference)
        with held:
            try:
                outcome: Files | Failure = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                self._pass_on()
                if number < ATTEMPTS:
                    self.emit(Retried(task.spec, _reason(error)))
                    self.todo.appendleft((task, number + 1))
                    return
                outcome = Failure(task.spec, f"{_reason(error)} ({ATTEMPTS} times)", str(error))
            self._pass_on()
            self.emit(outcome if isinstance(outcome, Failure) else _written(task, outcome))

    def _pass_on(self) -> None:
        for event in self.ray.get(self.mailbox.take.remote()):
            self.emit(event)


def scratch_name(out: Path) -> str:
    """What the nodes' directories for the cells of a run begin with: the same for whoever goes on with that run."""
    run = f"{platform.node()}:{out.resolve()}".encode()
    return f"grotta-{hashlib.blake2b(run, digest_size=8).hexdigest()}"


def prepare_on_node(task: PrepareTask, mailbox: Any) -> None:
    """What a node does before cells come to it."""
    prepare(task, lambda event: mailbox.put.remote(event))


def run_on_node(task: CellTask, scratch: str, mailbox: Any) -> Files | Failure:
    """What a node does with a cell: run it in a directory of its own and give its files, or why there are none.

    The directory outlives the worker and the driver, so that a cell goes on if it comes back to this node.
    """
    tune_allocator()
    ends: list[Event] = []

    def send(event: Event) -> None:
        if isinstance(event, Finished | Failure):
            ends.append(event)
        else:
            mailbox.put.remote(event)

    out = Path(tempfile.gettempdir()) / f"{scratch}-{task.spec.id}"
    attempt(replace(task, out=out, wait=True), send)
    [end] = ends
    directory = cell_directory(out, task.spec)
    files = {} if isinstance(end, Failure) else {name: (directory / name).read_bytes() for name in _FILES}
    shutil.rmtree(out, ignore_errors=True)
    return end if isinstance(end, Failure) else files


def _written(task: CellTask, files: Files) -> Event:
    directory = cell_directory(task.out, task.spec)
    try:
        for name in _FILES:
            write_file(directory / name, files[name])
        checkpoint.remove(directory)  # of a run on this machine that was stopped
        result = read_result(directory)
    except (OSError, ValueError) as error:
        return Failure(task.spec, one_line(error))
    return Finished(task.spec, result) if result else Failure(task.spec, f"its result vanished from {directory}")


def _reason(error: Exception) -> str:
    return f"its worker or node was lost ({type(error).__name__})"


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, connected; what was not connected before is not connected afterwards."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise ValueError("executor: ray is not installed; install it with: pip install 'grotta[ray]'") from None
    connected = ray.is_initialized()
    if not connected:
        local: dict[str, Any] = {} if address else {"include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
        except Exception as error:  # each way that a cluster cannot be had is another type in Ray
            where = f"reach the Ray cluster at {address}" if address else "start Ray on this machine"
            raise ConnectionError(f"cannot {where}: {one_line(error)}") from error
    try:
        yield ray
    finally:
        if not connected:
            ray.shutdown()
