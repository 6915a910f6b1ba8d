"""Cells on a Ray cluster: the same cells, the same events, the same bytes as on one machine.

Nodes share nothing but the network. Images and weights are those of this machine: a node that does not see them is
sent them once, into its cache. The files of a finished cell come back as bytes and are written here. A cell whose
worker or node dies is run again on another one.
"""

import contextlib
import logging
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from grotta._errors import one_line
from grotta._files import BusyError, write
from grotta.bench.cell import checkpoint
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Event, Failure, Finished, Preparing, Retried, Waiting
from grotta.bench.execute.executor import Executor, Workers
from grotta.bench.execute.local import make_data
from grotta.bench.execute.ray.node import (
    FILES,
    Delivery,
    Lacking,
    Mailbox,
    lacking_on_node,
    receive_on_node,
    run_on_node,
    scratch_name,
)
from grotta.bench.execute.ray.node_data import SentInputs, inputs_to_send
from grotta.bench.store.results import cell_directory
from grotta.bench.store.store import hold_cell, newer_result

# Nodes of a cluster come and go, but a cell that always kills its worker must end too.
ATTEMPTS = 4
POLL_SECONDS = 0.2


def run(tasks: Sequence[CellTask], workers: Workers, emit: Emit) -> None:
    """Run cells on the cluster at the address, or on one that is started on this machine."""
    with _cluster(workers.address) as ray:
        Driver(ray, tasks, workers.count, emit).run()


class Driver:
    """Hands out cells, as many at once as the cluster has cores, and writes the files that come back."""

    def __init__(self, ray: Any, tasks: Sequence[CellTask], workers: int | None, emit: Emit) -> None:
        self.ray = ray
        self.tasks = tasks
        self.workers = workers
        self.emit = emit
        self.todo: deque[tuple[CellTask, int]] = deque()
        self.problems: dict[str, str] = {}  # of nodes that could not receive their data
        self.busy: set[str] = set()
        self.flying: dict[Any, tuple[CellTask, int, contextlib.ExitStack]] = {}
        context = ray.get_runtime_context()
        beside = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(context.get_node_id(), soft=False)
        self.mailbox = ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=beside).remote()

    def run(self) -> None:
        make_data(self.tasks, emit=self.emit)
        self.todo = deque((task, 1) for task in self._with_inputs())
        self._send_data([node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")])
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

    def _with_inputs(self) -> Iterator[CellTask]:
        """The cells with what is sent along; one whose data or network cannot be opened is a failure."""
        known: dict[tuple[object, ...], SentInputs] = {}
        for task in self.tasks:
            spec = task.spec
            key = spec.dataset, spec.domains, spec.image_size, spec.model, spec.stream == "recorded"
            try:
                known[key] = known.get(key) or inputs_to_send(spec, task.data_root)
            except Exception as error:
                self.emit(Failure(spec, one_line(error), traceback.format_exc()))
            else:
                yield replace(task, open_inputs=known[key])

    def _send_data(self, nodes: Sequence[str]) -> None:
        """Send nodes the data that they lack; one that cannot receive it reports that when it gets a cell."""
        inputs = [task.open_inputs for task, _ in self.todo if isinstance(task.open_inputs, SentInputs)]
        extracts = dict.fromkeys(extract for sent in inputs for extract in sent.extracts)
        answers = self._ask(lacking_on_node, nodes, list(extracts))
        lacked = {extract: [node for node in nodes if extract in answers.get(node, ())] for extract in extracts}
        needed = {extract: nodes for extract, nodes in lacked.items() if nodes}
        for number, (extract, takers) in enumerate(needed.items(), start=1):
            self.emit(Preparing(f"sending {extract.what}, nodes: {len(takers)}", number, len(needed)))
            parts = [self.ray.put(part) for part in extract.parts()]
            self.problems |= self._ask(receive_on_node, takers, extract, parts)

    def _ask(self, function: Any, nodes: Sequence[str], *arguments: Any) -> dict[str, Any]:
        """Call a function on nodes, whatever else they are running; a lost node does not answer."""
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        asked = self.ray.remote(function)
        options = {"num_cpus": 0, "max_retries": 0}
        pending = {
            node: asked.options(**options, scheduling_strategy=affinity(node, soft=False)).remote(*arguments)
            for node in nodes
        }
        answers = {}
        for node, reference in pending.items():
            with contextlib.suppress(self.ray.exceptions.RayError):
                answers[node] = self.ray.get(reference)
        return answers

    def _hand_out(self) -> None:
        """Start as many cells as there is room for; those that another run is working on go to the end."""
        room = (self.workers or int(self.ray.cluster_resources().get("CPU", 1))) - len(self.flying)
        for _ in range(len(self.todo)):
            if room <= 0:
                return
            task, number = self.todo.popleft()
            held = contextlib.ExitStack()
            directory = cell_directory(task.out, task.spec)
            try:
                held.enter_context(hold_cell(directory, wait=False))
            except BusyError:
                if task.spec.id not in self.busy:
                    self.emit(Waiting(task.spec))
                self.busy.add(task.spec.id)
                self.todo.append((task, number))
                continue
            if (result := newer_result(directory, task.mark)) is not None:
                held.close()
                self.emit(Finished(task.spec, result, reused=True))
                continue
            self.flying[self._start(task)] = task, number, held
            room -= 1

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
        """Write the files of a finished cell, report a failed one, and retry one that died with its worker or node."""
        task, number, held = self.flying.pop(reference)
        with held:
            try:
                outcome: Delivery | Failure | Lacking = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                self._pass_on()
                if number < ATTEMPTS:
                    self.emit(Retried(task.spec, _reason(error)))
                    self.todo.appendleft((task, number + 1))
                    return
                outcome = Failure(task.spec, f"{_reason(error)} ({ATTEMPTS} times)", str(error))
            if isinstance(outcome, Lacking):
                if number < ATTEMPTS:
                    self.todo.appendleft((task, number + 1))
                    self._send_data([outcome.node])
                    return
                problem = self.problems.get(outcome.node) or "it was sent, but is missing there"
                outcome = Failure(task.spec, f"its data did not reach node {outcome.node}: {problem}")
            self._pass_on()
            self.emit(outcome if isinstance(outcome, Failure) else _written(task, outcome))

    def _pass_on(self) -> None:
        for event in self.ray.get(self.mailbox.take.remote()):
            self.emit(event)


def _written(task: CellTask, delivery: Delivery) -> Event:
    directory = cell_directory(task.out, task.spec)
    try:
        for name in FILES:
            write(directory / name, delivery.files[name])
        checkpoint.remove(directory)  # of a run on this machine that was stopped
    except OSError as error:
        return Failure(task.spec, one_line(error))
    return Finished(task.spec, replace(delivery.result, directory=directory))


def _reason(error: Exception) -> str:
    return f"its worker or node was lost ({type(error).__name__})"


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, connected; disconnected afterwards if it was not connected before."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise ValueError("executor ray must be installed first: pip install 'grotta[ray]'") from None
    connected = ray.is_initialized()
    if not connected:
        local: dict[str, Any] = {} if address else {"include_dashboard": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
        except Exception as error:  # Ray raises a different type for each way in which this fails
            where = f"reach the Ray cluster at {address}" if address else "start Ray on this machine"
            raise ConnectionError(f"cannot {where}: {one_line(error)}") from error
    try:
        yield ray
    finally:
        if not connected:
            ray.shutdown()


EXECUTOR = Executor(run, remote=True)
