"""What a node of a cluster does with a cell, without the cluster."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from grotta.bench import CellSpec, CellTask, Event, run_cell
from grotta.bench.events import Progressed
from grotta.bench.execute.ray.node import Delivery, run_on_node, scratch_name
from grotta.bench.inputs.opened import open_inputs

Make = Callable[..., CellSpec]


class StoppedError(Exception):
    pass


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_cell_goes_on_for_the_next_driver_of_the_run_and_its_directory_is_removed(
    tmp_path: Path, temporary: Path, data_root: Path, make_spec: Make
) -> None:
    spec, out = make_spec("bn", batch_size=70), tmp_path / "out"

    def stop(event: object) -> None:
        seen.extend([event] if isinstance(event, Progressed) else [])
        if len(seen) == 3:
            raise StoppedError

    seen: list[object] = []
    scratch = temporary / f"{scratch_name(out)}-{spec.id}"
    with pytest.raises(StoppedError):  # the driver was killed, and the workers with it
        run_cell(CellTask(spec, scratch, data_root, checkpoint_seconds=0), stop)
    events: list[Event] = []
    mailbox = SimpleNamespace(put=SimpleNamespace(remote=events.append))
    task = CellTask(spec, out, open_inputs=lambda spec, device: open_inputs(spec, data_root, device))
    delivery = run_on_node(task, scratch_name(out), mailbox)
    assert isinstance(delivery, Delivery)
    assert next(event.progress.images for event in events if isinstance(event, Progressed)) == 210
    run_cell(CellTask(spec, tmp_path / "whole", data_root))
    for name in ("result.json", "records.npz"):
        assert delivery.files[name] == (tmp_path / "whole" / "cells" / spec.id / name).read_bytes()
    assert list(temporary.iterdir()) == []


def test_runs_do_not_share_their_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert scratch_name(Path("runs")) == scratch_name(tmp_path / "other" / ".." / "runs")
    assert scratch_name(Path("runs")) != scratch_name(Path("runs2"))
