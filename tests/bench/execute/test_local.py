"""Real processes: what they give, and what happens when they are killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from safetensors.torch import save_file

from grotta import models
from grotta.bench import CellResult, CellSpec, Failure, load_results, run_grid
from grotta.bench.events import Event, Finished, Progressed, Retried, Started, Waiting
from grotta.bench.store.results import cell_directory
from grotta.bench.store.store import hold_cell
from grotta.paper.directory import directory_report
from grotta.report.write import write_report

Make = Callable[..., CellSpec]
Contents = Callable[[Path], dict[str, bytes]]
Limited = Callable[[int], AbstractContextManager[None]]

RUN = """
import sys
from grotta.bench import CellSpec, run_grid
out, root, *specs = sys.argv[1:]
run_grid([CellSpec.from_json(spec) for spec in specs], out, data_root=root, workers=2, checkpoint_seconds=0)
"""


FULL_CASES = {  # file that cannot be written -> limit, seconds between checkpoints
    "checkpoint.npz": (3_000, 0.0),
    "checkpoint.safetensors": (12_000, 0.0),
    "records.npz": (3_000, 1e9),
    "result.json": (7_000, 1e9),
}


def process_of(event: Started) -> int:
    return int(event.worker.removeprefix("process "))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, data_root: Path, make_spec: Make) -> Path:
    """Three cells, undisturbed, in this process."""
    out = tmp_path_factory.mktemp("whole")
    run_grid(grid(make_spec), out, executor="inline", data_root=data_root)
    return out


def grid(make_spec: Make) -> list[CellSpec]:
    return [make_spec(method, batch_size=10, domains=("fog",)) for method in ("source", "tent", "grotta")]


def test_processes_give_the_same_bytes_and_survive_the_death_of_one(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, whole: Path
) -> None:
    victim = grid(make_spec)[2]
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        starts = [e for e in events if isinstance(e, Started) and e.spec == victim]
        if isinstance(event, Progressed) and event.spec == victim and len(starts) == 1:
            os.kill(process_of(starts[0]), signal.SIGKILL)

    outcomes = run_grid(
        grid(make_spec), tmp_path, data_root=data_root, workers=2, on_event=on_event, checkpoint_seconds=0
    )
    assert all(isinstance(outcome, CellResult) for outcome in outcomes)
    assert [event.reason for event in events if isinstance(event, Retried)] == ["its process ended with signal 9"]
    assert contents(tmp_path) == contents(whole)


def test_a_cell_whose_process_always_dies_fails_with_its_last_words(
    tmp_path: Path, data_root: Path, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = [sys.executable, "-c", "import sys; sys.exit('out of memory')"]
    monkeypatch.setattr("grotta.bench.execute.local.COMMAND", dying)
    events: list[Event] = []
    [failure] = run_grid([make_spec()], tmp_path, data_root=data_root, workers=1, on_event=events.append)
    assert isinstance(failure, Failure)
    assert failure.message == "its process ended with exit code 1: out of memory (2 times)"
    assert sum(isinstance(event, Retried) for event in events) == 1
    assert load_results(tmp_path) == []


def test_a_run_killed_at_a_random_moment_goes_on_to_the_same_bytes_and_the_same_table(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, whole: Path
) -> None:
    specs = [spec.to_json() for spec in grid(make_spec)]
    for number in range(5):
        out, events = tmp_path / str(number), list[Event]()
        process = subprocess.Popen([sys.executable, "-c", RUN, str(out), str(data_root), *specs])
        while process.poll() is None and not list(out.glob("cells/*/checkpoint.safetensors")):
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.5))
        process.kill()
        process.wait()
        run_grid(grid(make_spec), out, executor="inline", data_root=data_root, on_event=events.append)
        assert contents(out) == contents(whole)
        assert table(out, tmp_path / "killed.html") == table(whole, tmp_path / "whole.html")
        if any(isinstance(event, Progressed) for event in events):
            return
    pytest.fail("the run was over before each of the kills")


def table(out: Path, page: Path) -> bytes:
    write_report(directory_report(out), page, formats=["csv"])
    return page.with_suffix(".csv").read_bytes()


def test_a_file_that_cannot_be_written_leaves_nothing_that_counts_and_no_litter(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, limited_files: Limited
) -> None:
    weights = tmp_path / "net.safetensors"
    save_file(models.create_model("fashion_resnet8", num_classes=10, seed=1).state_dict(), weights)
    specs = {}
    for file in FULL_CASES:
        detour = "/." * (2000 if file == "result.json" else 1)  # makes that file longer than the records
        specs[file] = make_spec("grotta", domains=("fog",), model=f"fashion_resnet8@{detour}{weights}")
    run_grid(list(dict.fromkeys(specs.values())), tmp_path / "whole", executor="inline", data_root=data_root)
    whole = contents(tmp_path / "whole")
    for file, (size, seconds) in FULL_CASES.items():
        out, spec = tmp_path / file, specs[file]
        directory = cell_directory(out, spec)
        with limited_files(size):
            how = {"executor": "inline", "data_root": data_root, "checkpoint_seconds": seconds}
            [failure] = run_grid([spec], out, **how)
        assert isinstance(failure, Failure)
        assert "File too large" in failure.message
        assert str(directory) in failure.message
        assert load_results(out) == []
        assert not (directory / file).exists()
        assert not list(directory.glob("*.part"))
        run_grid([spec], out, executor="inline", data_root=data_root)
        assert contents(out).items() <= whole.items()
        assert len(contents(out)) == 2


def test_two_runs_at_once_in_one_directory_share_the_work(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, whole: Path
) -> None:
    local: list[Event] = []
    inline: list[Event] = []

    def run() -> None:
        run_grid(grid(make_spec), tmp_path, data_root=data_root, workers=1, on_event=local.append)

    thread = threading.Thread(target=run)
    thread.start()
    while not any(isinstance(event, Progressed) for event in local) and thread.is_alive():
        time.sleep(0.01)
    run_grid(grid(make_spec)[::-1], tmp_path, executor="inline", data_root=data_root, on_event=inline.append)
    thread.join()
    assert contents(tmp_path) == contents(whole)
    for events in (local, inline):
        assert {event.spec for event in events if isinstance(event, Finished)} == set(grid(make_spec))
    computed = [{event.spec for event in events if isinstance(event, Progressed)} for events in (local, inline)]
    assert not computed[0] & computed[1]


def test_a_cell_that_is_busy_elsewhere_is_left_for_last(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, whole: Path
) -> None:
    busy = hold_cell(cell_directory(tmp_path, grid(make_spec)[0]))
    busy.__enter__()
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if sum(isinstance(e, Finished) for e in events) == 2:
            busy.__exit__(None, None, None)

    run_grid(grid(make_spec), tmp_path, data_root=data_root, workers=1, on_event=on_event)
    assert [event.spec.method for event in events if isinstance(event, Waiting)] == ["source"]
    assert [event.spec.method for event in events if isinstance(event, Finished)][-1] == "source"
    assert contents(tmp_path) == contents(whole)


def test_ctrl_c_stops_the_workers_and_keeps_what_is_done(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, whole: Path
) -> None:
    started: list[int] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Started):
            started.append(process_of(event))
        if isinstance(event, Progressed):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_grid(grid(make_spec), tmp_path, data_root=data_root, workers=1, on_event=on_event, checkpoint_seconds=0)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
    run_grid(grid(make_spec), tmp_path, executor="inline", data_root=data_root)
    assert contents(tmp_path) == contents(whole)
