"""The images that cells share, made or found once before the cells run."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Preparing
from grotta.bench.inputs.opened import load_dataset
from grotta.bench.spec import CellSpec


@dataclass(frozen=True)
class PrepareTask:
    """A domain whose images are to be made or found, given by the spec of a cell: item ``number`` of ``total``."""

    spec: CellSpec
    domain: str
    data_root: Path | None
    number: int
    total: int


def shared_data(tasks: Sequence[CellTask]) -> list[PrepareTask]:
    """What has to be in place before the cells can run, each domain once."""
    domains = {
        (task.spec.dataset, domain, task.data_root, task.spec.image_size, task.spec.stream == "recorded"): task.spec
        for task in tasks
        for domain in task.spec.domains
    }
    return [
        PrepareTask(spec, domain, data_root, number, len(domains))
        for number, ((_, domain, data_root, *_), spec) in enumerate(domains.items(), start=1)
    ]


def prepare(task: PrepareTask, emit: Emit) -> None:
    """Make the images of a domain, if they are missing."""
    emit(Preparing(f"{task.spec.dataset} {task.domain}", task.number, task.total))
    with contextlib.suppress(Exception):  # the cells that need them will report it
        load_dataset(replace(task.spec, domains=(task.domain,)), task.data_root, keep_decoded=True).prepare()
