"""From a plan to results, wherever the cells run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grotta._files import require_writable
from grotta.bench.cell import checkpoint
from grotta.bench.cell.task import CHECKPOINT_SECONDS, CellTask
from grotta.bench.cost import cost
from grotta.bench.events import Emit, Event, Failure, Finished, Warned, ignore
from grotta.bench.execute.executor import Workers
from grotta.bench.execute.registry import find_executor
from grotta.bench.plan import Plan
from grotta.bench.spec import CellSpec
from grotta.bench.store.results import CellResult, cell_directory
from grotta.bench.store.store import Store


def run_grid(
    specs: Sequence[CellSpec],
    directory: str | Path,
    *,
    executor: str = "local",
    workers: int | None = None,
    address: str | None = None,
    data_root: str | Path | None = None,
    device: str = "cpu",
    on_event: Emit = ignore,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[CellResult | Failure]:
    """Run cells and return, in the order of ``specs``, the result of each or why it failed.

    The arguments are those of :class:`grotta.bench.plan.Plan`; ``on_event`` is called with every event, in the calling
    thread.

    Raises:
        ValueError: a spec names something that does not exist, or an argument is wrong; nothing has run.
        OSError: ``directory`` cannot be written to; nothing has run.
    """
    plan = Plan(
        specs=tuple(specs),
        out=Path(directory),
        executor=executor,
        workers=workers,
        address=address,
        data_root=None if data_root is None else Path(data_root),
        device=device,
        checkpoint_seconds=checkpoint_seconds,
    )
    return run_plan(plan, on_event)


def run_plan(plan: Plan, on_event: Emit = ignore) -> list[CellResult | Failure]:
    """Run the cells of a plan and return, in their order, the result of each or why it failed.

    A finished cell is not run again unless its method's code, its weights or its data have changed since; one that was
    stopped is resumed from its last checkpoint; one that fails does not stop the others. The bytes of a result are the
    same wherever it runs.
    """
    require_writable(plan.out)
    outcomes: dict[CellSpec, CellResult | Failure] = {}

    def note(event: Event) -> None:
        if isinstance(event, Finished):
            outcomes[event.spec] = event.result
        elif isinstance(event, Failure):
            outcomes[event.spec] = event
        on_event(event)

    tasks = sorted(_unfinished(plan, note), key=lambda task: cost(task.spec))
    if tasks:
        find_executor(plan.executor).run(tasks, Workers(plan.workers, plan.address), note)
    return [replace(outcomes[spec], spec=spec) for spec in plan.specs]


def _unfinished(plan: Plan, emit: Emit) -> list[CellTask]:
    """A task for each cell that has no current result; the others are reported as finished."""
    store, tasks = Store(plan.out, plan.data_root), []
    for spec in dict.fromkeys(plan.specs):
        found = store.current(spec)
        if found.result is not None:
            checkpoint.remove(cell_directory(plan.out, spec))  # it may be left over from a kill
            emit(Finished(spec, found.result, reused=True))
            continue
        if found.stale:
            emit(Warned(spec, f"{found.stale}; it is run again"))
        tasks.append(CellTask(spec, plan.out, plan.data_root, plan.device, plan.checkpoint_seconds, mark=found.mark))
    return tasks
