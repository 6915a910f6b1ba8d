"""What to run, where and how, validated once before anything is opened, written or run."""

from dataclasses import dataclass
from pathlib import Path

from grotta._check import check_at_least, check_whole
from grotta.bench.cell.task import CHECKPOINT_SECONDS
from grotta.bench.execute.registry import find_executor
from grotta.bench.inputs.check import check_device, check_spec
from grotta.bench.spec import CellSpec


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Cells and how they are run. A plan that exists is valid; making one writes nothing.

    Attributes:
        specs: the cells; equal ones are run once.
        out: where results are kept. Several runs may share it, even at the same time.
        executor: ``"local"`` (processes of this machine), ``"ray"`` (a cluster) or ``"inline"`` (this process).
        workers: how many cells run at once; by default as many as there are cores.
        address: of an existing Ray cluster; without one, Ray is started on this machine.
        data_root: where data is looked for first.
        device: where the networks run.
        checkpoint_seconds: at least this long between two checkpoints of a cell.

    >>> Plan(specs=(), out=Path("runs"), workers=0)
    Traceback (most recent call last):
    ValueError: workers must be at least 1, got 0
    """

    specs: tuple[CellSpec, ...]
    out: Path
    executor: str = "local"
    workers: int | None = None
    address: str | None = None
    data_root: Path | None = None
    device: str = "cpu"
    checkpoint_seconds: float = CHECKPOINT_SECONDS

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_whole("workers", self.workers, at_least=1)
        check_at_least("checkpoint_seconds", self.checkpoint_seconds, 0)
        remote = find_executor(self.executor).remote
        if self.address is not None and not remote:
            raise ValueError(f"address must be left out with executor {self.executor!r}, got {self.address!r}")
        if not remote:  # the nodes of a cluster have devices of their own
            check_device(self.device)
        for spec in dict.fromkeys(self.specs):
            check_spec(spec)
