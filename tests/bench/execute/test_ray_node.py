"""What a node of a cluster does with a cell, without the cluster."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from grotta.bench import CellSpec, run_cell
from grotta.bench.events import Event, Failure, Progressed
from grotta.bench.execute.ray_node import run_on_node, scratch_name
from grotta.bench.execute.task import CellTask

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

    def stop(progress: object) -> None:
        seen.append(progress)
        if len(seen) == 3:
            raise StoppedError

    seen: list[object] = []
    scratch = temporary / f"{scratch_name(out)}-{spec.id}"
    with pytest.raises(StoppedError):  # the driver was killed, and the workers with it
        run_cell(spec, scratch, data_root=data_root, on_progress=stop, checkpoint_seconds=0)
    events: list[Event] = []
    mailbox = SimpleNamespace(put=SimpleNamespace(remote=events.append))
    files = run_on_node(CellTask(spec, out, data_root), scratch_name(out), mailbox)
    assert not isinstance(files, Failure)
    assert next(event.progress.images for event in events if isinstance(event, Progressed)) == 210
    run_cell(spec, tmp_path / "whole", data_root=data_root)
    for name in ("result.json", "records.npz"):
        assert files[name] == (tmp_path / "whole" / "cells" / spec.id / name).read_bytes()
    assert list(temporary.iterdir()) == []


def test_runs_do_not_share_their_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert scratch_name(Path("runs")) == scratch_name(tmp_path / "other" / ".." / "runs")
    assert scratch_name(Path("runs")) != scratch_name(Path("runs2"))
