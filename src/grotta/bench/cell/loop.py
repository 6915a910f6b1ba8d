"""Running one cell: over the stream batch by batch, with checkpoints, to a result."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from grotta import methods
from grotta._files import write
from grotta.bench.cell import checkpoint
from grotta.bench.cell.adapter import make_adapter, source_agreement, warnings_about
from grotta.bench.cell.stopwatch import Stopwatch
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Progress, Progressed, Started, ignore
from grotta.bench.inputs.check import check_device, check_spec
from grotta.bench.inputs.network import short_fingerprint
from grotta.bench.inputs.opened import CellInputs, open_inputs
from grotta.bench.process import forget_peak_memory, one_thread
from grotta.bench.spec import CellSpec
from grotta.bench.store import records as rec
from grotta.bench.store.method_code import cell_digest
from grotta.bench.store.records import Records
from grotta.bench.store.results import RECORDS, RESULT, SPEC, TIMING, CellResult, cell_directory, encode_result
from grotta.bench.store.store import hold_cell, newer_result
from grotta.bench.store.versions import versions


def run_cell(task: CellTask, emit: Emit = ignore) -> CellResult:
    """Run a cell, or resume it where it was stopped; a result that another run wrote meanwhile is used as it is.

    Args:
        task: the cell, and where and how to run it.
        emit: called with ``Started`` once the cell is locked and has to be run, then with ``Progressed`` per batch.
    """
    spec = task.spec
    check_spec(spec)
    check_device(task.device)
    directory = cell_directory(task.out, spec)
    with hold_cell(directory, wait=task.wait):
        finished = newer_result(directory, task.mark)
        if finished is not None:
            return finished
        emit(Started(spec, f"process {os.getpid()}"))
        write(directory / SPEC, spec.to_json().encode())
        forget_peak_memory()
        opened = task.open_inputs
        inputs = opened(spec, task.device) if opened else open_inputs(spec, task.data_root, task.device)
        with one_thread():
            return _run(task, directory, inputs, emit)


def _run(task: CellTask, directory: Path, inputs: CellInputs, emit: Emit) -> CellResult:
    spec, total = task.spec, len(inputs.stream)
    batches = sum(1 for _ in inputs.stream.batches(spec.batch_size))
    records = Records(batches, total, recorded=spec.stream == "recorded")
    adapter = checkpoint.restore(directory, inputs, records, inputs.batch_starts(spec) if spec.per_stream else (0,))
    if adapter is None:
        adapter = make_adapter(spec, inputs.model, inputs.dataset)
    stopwatch = Stopwatch(directory / TIMING, resumed=records.batches > 0)
    saver = checkpoint.Saver(directory, inputs, task.checkpoint_seconds)
    for progress in _steps(spec, inputs, adapter, records):
        emit(Progressed(spec, progress))
        if progress.images < total and saver.due():
            saver.save(adapter, records, records.domain if spec.per_stream else 0)
            stopwatch.write(records.images)
    content = rec.to_bytes(records.columns())
    result = _result(spec, directory, inputs, adapter, records)
    write(directory / RECORDS, content)
    timing = stopwatch.write(total)
    write(directory / RESULT, encode_result(result, content))
    checkpoint.remove(directory)
    return replace(result, **timing)  # type: ignore[arg-type]  # three floats, by name


def _steps(spec: CellSpec, inputs: CellInputs, adapter: methods.Adapter, records: Records) -> Iterator[Progress]:
    """Feed the adapter the batches that are not in the records yet, and record what it predicts."""
    periods = inputs.periods(spec.period)
    for domain, indices in islice(inputs.stream.batches(spec.batch_size), records.batches, None):
        name, start = inputs.dataset.domains[domain], int(inputs.stream.boundaries[domain])
        if spec.per_stream and records.images == start > 0:
            adapter.reset()
        images = inputs.dataset.images(name, indices).to(adapter.device)
        predictions = adapter(images).argmax(1)
        labels = inputs.labels[domain][indices]
        records.add(
            adapter.last,
            domain=domain,
            period=int(periods[records.images]),
            predictions=predictions.cpu().numpy(),
            labels=labels,
            times=inputs.times(domain, indices),
            agreement=None if (labels >= 0).any() else source_agreement(inputs.model, adapter, images, predictions),
        )
        yield Progress(
            images=records.images,
            wrong=records.wrong_since(0),
            total=len(inputs.stream),
            domain=name,
            domain_images=records.images - start,
            domain_wrong=records.wrong_since(start),
            unknown=records.unknown_since(0),
            domain_unknown=records.unknown_since(start),
        )


def _result(
    spec: CellSpec, directory: Path, inputs: CellInputs, adapter: methods.Adapter, records: Records
) -> CellResult:
    columns = records.columns()
    return CellResult(
        spec=spec,
        model=inputs.model_name,
        model_fingerprint=short_fingerprint(inputs.model),
        stream_hash=inputs.stream.hash,
        data_fingerprint=inputs.data_fingerprint,
        method_fingerprint=cell_digest(spec),
        error=rec.total_error(columns),
        domain_errors=rec.domain_errors(columns, inputs.lengths),
        images=len(inputs.stream),
        measures=rec.measures(columns, inputs.dataset.class_names),
        classes=inputs.dataset.num_classes,
        provenance=inputs.dataset.provenance,
        versions=versions(adapter.device.type),
        warnings=() if spec.per_stream else warnings_about(adapter, inputs.lengths),
        distinct_images=_distinct(inputs),
        directory=directory,
    )


def _distinct(inputs: CellInputs) -> int:
    """How many different images were seen, for original pictures of which some came more than once; else 0."""
    repeated = inputs.dataset.provenance == "original" and inputs.distinct < len(inputs.stream)
    return inputs.distinct if repeated else 0
