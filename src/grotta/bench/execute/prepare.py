"""The images that cells share, made or found once before any cell needs them."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grotta import data
from grotta.bench.cell.task import CellTask
from grotta.bench.events import Emit, Preparing


@dataclass(frozen=True)
class PrepareTask:
    """A domain whose images are to be made or found: item ``number`` of ``total``."""

    dataset: str
    domain: str
    data_root: Path | None
    image_size: int
    number: int
    total: int


def shared_data(tasks: Sequence[CellTask]) -> list[PrepareTask]:
    """What has to be in place before the cells can run, each domain once."""
    domains = {
        (task.spec.dataset, domain, task.data_root, task.spec.image_size): None
        for task in tasks
        for domain in task.spec.domains
    }
    return [PrepareTask(*domain, number, len(domains)) for number, domain in enumerate(domains, start=1)]


def prepare(task: PrepareTask, emit: Emit) -> None:
    """Make the images of a domain, if they are missing."""
    emit(Preparing(f"{task.dataset} {task.domain}", task.number, task.total))
    with contextlib.suppress(Exception):  # the cells that need them will say what is wrong
        data.load(
            task.dataset, root=task.data_root, domains=[task.domain], image_size=task.image_size, keep_decoded=True
        ).prepare()
