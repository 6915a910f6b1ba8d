"""Running one cell: over the stream batch by batch, with checkpoints, to a result."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from grotta import methods
from grotta.bench.cell import checkpoint
from grotta.bench.cell import records as rec
from grotta.bench.cell.inputs import Setting, make_adapter, open_setting, short_fingerprint, warnings_about
from grotta.bench.cell.records import Records
from grotta.bench.cell.stopwatch import Stopwatch
from grotta.bench.execute.process import forget_peak_memory, one_thread
from grotta.bench.spec import CellSpec
from grotta.bench.store.freshness import Present
from grotta.bench.store.lock import cell_lock
from grotta.bench.store.results import (
    RECORDS,
    RESULT,
    SPEC,
    TIMING,
    CellResult,
    DamagedCellError,
    cell_directory,
    encode_result,
    read_result,
    versions,
    write_file,
)

CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """How far a cell has come: images seen and wrong answers among them, in all and in the present domain."""

    images: int
    wrong: int
    total: int
    domain: str
    domain_images: int
    domain_wrong: int

    @property
    def error(self) -> float:
        """In per cent, so far."""
        return 100.0 * self.wrong / max(self.images, 1)

    @property
    def domain_error(self) -> float:
        """In per cent, so far in the present domain."""
        return 100.0 * self.domain_wrong / max(self.domain_images, 1)


OnProgress = Callable[[Progress], None]


def run_cell(
    spec: CellSpec,
    out: str | Path,
    *,
    data_root: str | Path | None = None,
    device: str = "cpu",
    on_start: Callable[[], None] = lambda: None,
    on_progress: OnProgress = lambda progress: None,
    wait: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    open_with: Callable[[CellSpec, str], Setting] | None = None,
) -> CellResult:
    """Run a cell, or go on with it where it was stopped, or read its result if it has finished.

    A result that was made with other weights or data than those of today does not count: the new one takes its place.

    Args:
        spec: the cell.
        out: the directory of the run; the cell's files are in ``<out>/cells/<id>/``.
        data_root: where data is looked for first.
        device: where the network runs.
        on_start: called once the cell is ours and has to be run.
        on_progress: called after every batch.
        wait: for another process that is running the same cell; if not, that is a ``CellBusyError``.
        checkpoint_seconds: between two checkpoints, at least.
        open_with: opens the data and the network of a spec on a device; they are looked for on this machine by default.
    """
    directory, root = cell_directory(Path(out), spec), None if data_root is None else Path(data_root)
    with cell_lock(directory, wait=wait):
        finished = _finished(directory, root)
        if finished is not None:
            return finished
        on_start()
        write_file(directory / SPEC, spec.to_json().encode())
        forget_peak_memory()
        setting = open_with(spec, device) if open_with else open_setting(spec, root, device)
        with one_thread():
            return _run(spec, directory, setting, on_progress, checkpoint_seconds)


def _finished(directory: Path, data_root: Path | None) -> CellResult | None:
    try:
        result = read_result(directory)
    except DamagedCellError as error:
        warnings.warn(f"{error}; it runs again", stacklevel=3)
        for name in (RESULT, RECORDS, TIMING, SPEC):
            (directory / name).unlink(missing_ok=True)
        return None
    if result is None:
        return None
    if change := Present(data_root).change(result):
        warnings.warn(f"the cell in {directory} is out of date: {change}; it runs again", stacklevel=3)
        return None
    checkpoint.remove(directory)  # a kill may have left it beside the result
    return result


def _run(
    spec: CellSpec, directory: Path, setting: Setting, on_progress: OnProgress, checkpoint_seconds: float
) -> CellResult:
    total = len(setting.stream)
    records = Records(sum(1 for _ in setting.stream.batches(spec.batch_size)), total)
    adapter = checkpoint.restore(directory, setting, records)
    if adapter is None:
        adapter = make_adapter(spec, setting.model, setting.dataset.num_classes)
    stopwatch = Stopwatch(directory / TIMING, resumed=records.batches > 0)
    saver = checkpoint.Saver(directory, setting, checkpoint_seconds)
    for progress in _steps(spec, setting, adapter, records):
        on_progress(progress)
        if progress.images < total and saver.due():
            saver.save(adapter, records)
            stopwatch.write(records.images)
    content = rec.to_bytes(records.columns())
    result = _summary(spec, directory, setting, adapter, records)
    write_file(directory / RECORDS, content)
    stopwatch.write(total)
    write_file(directory / RESULT, encode_result(result, content))
    checkpoint.remove(directory)
    return read_result(directory) or result


def _steps(spec: CellSpec, setting: Setting, adapter: methods.Adapter, records: Records) -> Iterator[Progress]:
    """Give the adapter the batches that are not in the records yet, and write down what it makes of each."""
    periods = setting.periods(spec.period)
    for domain, indices in islice(setting.stream.batches(spec.batch_size), records.batches, None):
        name, start = setting.dataset.domains[domain], int(setting.stream.boundaries[domain])
        probs = adapter(setting.dataset.images(name, indices).to(adapter.device))
        records.add(
            adapter.last,
            domain=domain,
            period=int(periods[records.images]),
            predictions=probs.argmax(1).cpu().numpy(),
            labels=setting.labels[domain][indices],
        )
        yield Progress(
            images=records.images,
            wrong=records.wrong_since(0),
            total=len(setting.stream),
            domain=name,
            domain_images=records.images - start,
            domain_wrong=records.wrong_since(start),
        )


def _summary(
    spec: CellSpec, directory: Path, setting: Setting, adapter: methods.Adapter, records: Records
) -> CellResult:
    columns = records.columns()
    return CellResult(
        spec=spec,
        model=setting.model_name,
        model_fingerprint=short_fingerprint(setting.model),
        stream_hash=setting.stream.hash,
        data_fingerprint=setting.data_fingerprint,
        error=rec.total_error(columns),
        domain_errors=rec.domain_errors(columns, setting.lengths),
        images=len(setting.stream),
        classes=setting.dataset.num_classes,
        provenance=setting.dataset.provenance,
        versions=versions(adapter.device.type),
        warnings=warnings_about(adapter, setting.lengths),
        directory=directory,
    )
