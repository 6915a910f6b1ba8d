"""A grid of cells from specs to results, wherever the cells run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, get_args

from grotta.bench.cell import inputs as setting
from grotta.bench.cell.loop import CHECKPOINT_SECONDS
from grotta.bench.cost import cost
from grotta.bench.events import Emit, Event, Failure, Finished, ignore
from grotta.bench.execute.local import run_local
from grotta.bench.execute.task import CellTask, attempt
from grotta.bench.spec import CellSpec
from grotta.bench.store.freshness import Present
from grotta.bench.store.results import CellResult, DamagedCellError, cell_directory, read_result

Executor = Literal["local", "ray", "inline"]


def run_grid(
    specs: Sequence[CellSpec],
    directory: str | Path,
    *,
    executor: Executor = "local",
    workers: int | None = None,
    address: str | None = None,
    data_root: str | Path | None = None,
    device: str = "cpu",
    on_event: Emit = ignore,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[CellResult | Failure]:
    """Run cells and give, in the order of ``specs``, the result of each or why it has none.

    Finished cells are read, not run again, unless weights or data have changed since; one that was stopped goes on from
    its last checkpoint; one that fails does not stop the others. The bytes of a result are the same whatever runs it.

    Args:
        specs: the cells; equal ones are run once.
        directory: where results are kept. Several runs may share it, also at the same time.
        executor: ``"local"`` (processes of this machine), ``"ray"`` (a cluster) or ``"inline"`` (this process).
        workers: how many cells at once; as many as there are cores by default.
        address: of an existing Ray cluster; without one, Ray is started on this machine.
        data_root: where data is looked for first.
        device: where the networks run.
        on_event: called with every event, in the calling thread.
        checkpoint_seconds: between two checkpoints of a cell, at least.

    Raises:
        ValueError: a spec names something that does not exist; nothing has run.
        OSError: ``directory`` cannot be written to; nothing has run.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers: expected at least 1, got {workers}")
    if executor not in get_args(Executor):
        raise ValueError(f"executor: expected one of {', '.join(get_args(Executor))}, got {executor!r}")
    if executor != "ray":  # where networks run on a cluster is the nodes' affair
        setting.check_device(device)
    for spec in specs:
        setting.check(spec)
    out, root = Path(directory), None if data_root is None else Path(data_root)
    require_writable(out)
    outcomes: dict[CellSpec, CellResult | Failure] = {}

    def note(event: Event) -> None:
        if isinstance(event, Finished):
            outcomes[event.spec] = event.result
        elif isinstance(event, Failure):
            outcomes[event.spec] = event
        on_event(event)

    todo = _unfinished(specs, out, Present(root), note)
    tasks = [CellTask(spec, out, root, device, checkpoint_seconds=checkpoint_seconds) for spec in todo]
    if executor == "inline":
        for task in tasks:
            attempt(task, note)
        for task in tasks:
            if task.spec not in outcomes:  # another run had it
                attempt(replace(task, wait=True), note)
    elif executor == "local" and tasks:
        run_local(tasks, workers=workers, emit=note)
    elif tasks:
        from grotta.bench.execute.ray import run_ray

        run_ray(tasks, workers=workers, address=address, emit=note)
    return [replace(outcomes[spec], spec=spec) for spec in specs]


def _unfinished(specs: Sequence[CellSpec], out: Path, present: Present, emit: Emit) -> list[CellSpec]:
    """The cells that have no result that stands, the longest first, so that all workers finish at about one time."""
    todo = []
    for spec in dict.fromkeys(specs):
        try:
            result = read_result(cell_directory(out, spec))
        except DamagedCellError:
            result = None
        if result is None or present.change(result):  # whoever runs it says so
            todo.append(spec)
        else:
            emit(Finished(spec, result, reused=True))
    return sorted(todo, key=cost, reverse=True)


def require_writable(out: Path) -> None:
    """Make the directory ``out``; an ``OSError`` that names it if nothing can be put there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = "it is a file, not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise OSError(f"out: cannot write to {str(out)!r}: {reason}") from error
