import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import SafetensorError
from safetensors.torch import save_file

from grotta import models
from grotta._errors import one_line
from grotta._files import BusyError
from grotta.bench import CellResult, CellSpec, Failure, load_results, run_grid
from grotta.bench.events import Event, Finished, Progressed, Started, Waiting, Warned
from grotta.bench.store.results import DamagedCellError, cell_directory
from grotta.bench.store.store import hold_cell
from grotta.data.errors import DamagedDataError
from grotta.models.state_file import write_state

Make = Callable[..., CellSpec]


def test_outcomes_come_in_the_order_of_the_specs(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    specs = [make_spec("source"), make_spec("tent"), make_spec("bn"), make_spec("source", label="again")]
    outcomes = run_grid(specs, tmp_path, executor="inline", data_root=data_root)
    assert [outcome.spec.label for outcome in outcomes] == ["source", "tent", "bn", "again"]
    assert len(load_results(tmp_path)) == 3


def test_the_cheapest_cells_come_first_and_finished_ones_are_not_run(
    tmp_path: Path, data_root: Path, make_spec: Make
) -> None:
    specs = [make_spec("source"), make_spec("tent"), make_spec("bn")]
    run_grid(specs[:1], tmp_path, executor="inline", data_root=data_root)
    events: list[Event] = []
    run_grid(specs, tmp_path, executor="inline", data_root=data_root, on_event=events.append)
    assert [event.spec.method for event in events if isinstance(event, Started)] == ["bn", "tent"]
    reused = [event for event in events if isinstance(event, Finished) and event.reused]
    assert [event.spec.method for event in reused] == ["source"]
    last = [event.progress for event in events if isinstance(event, Progressed)][-1]
    assert last.images == last.total == 280


def test_a_failed_cell_is_reported_and_the_others_go_on(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    specs = [make_spec("grotta", options={"alpha": 2.0}), make_spec("source")]
    failure, result = run_grid(specs, tmp_path, executor="inline", data_root=data_root)
    assert isinstance(failure, Failure)
    assert "alpha" in failure.message
    assert "\n" not in failure.message
    assert "Traceback" in failure.details
    assert isinstance(result, CellResult)
    assert load_results(tmp_path) == [result]


def test_a_damaged_cell_is_warned_of_and_runs_again(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    [result] = run_grid([make_spec()], tmp_path, executor="inline", data_root=data_root)
    assert isinstance(result, CellResult)
    (result.directory / "result.json").write_text("{")
    events: list[Event] = []
    [again] = run_grid([make_spec()], tmp_path, executor="inline", data_root=data_root, on_event=events.append)
    assert again == result
    assert isinstance(events[0], Warned)
    assert "damaged" in events[0].message  # before it runs, not after
    assert [type(event) for event in events[1:3]] == [Started, Progressed]


def test_a_cell_that_another_run_has_is_waiting_and_not_started(
    tmp_path: Path, data_root: Path, make_spec: Make
) -> None:
    busy, free = make_spec("source"), make_spec("tent")
    held = hold_cell(cell_directory(tmp_path, busy))
    held.__enter__()
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Finished) and event.spec == free:
            held.__exit__(None, None, None)

    run_grid([busy, free], tmp_path, executor="inline", data_root=data_root, on_event=on_event)
    seen = [type(event) for event in events if not isinstance(event, Progressed)]
    assert seen == [Waiting, Started, Finished, Started, Finished]


def test_a_cell_whose_weights_have_changed_is_warned_of_and_runs_again(
    tmp_path: Path, data_root: Path, make_spec: Make
) -> None:
    weights = tmp_path / "net.safetensors"
    specs = [make_spec(method, model=f"fashion_resnet8@{weights}") for method in ("source", "bn")]

    def run(seed: int) -> tuple[list[CellResult | Failure], list[Event]]:
        save_file(models.create_model("fashion_resnet8", num_classes=10, seed=seed).state_dict(), weights)
        events: list[Event] = []
        return run_grid(specs, tmp_path, executor="inline", data_root=data_root, on_event=events.append), events

    first, _ = run(seed=1)
    same, events = run(seed=1)
    assert same == first
    assert [event.reused for event in events if isinstance(event, Finished)] == [True, True]
    other, events = run(seed=2)
    assert all(new != old for new, old in zip(other, first, strict=True))
    warned = [event for event in events if isinstance(event, Warned)]
    assert {event.spec for event in warned} == set(specs)
    assert all("out of date: the weights of" in event.message for event in warned)


def test_a_flipped_bit_of_the_weights_is_noticed_though_the_cell_is_finished(
    tmp_path: Path, data_root: Path, make_spec: Make
) -> None:
    weights = tmp_path / "net.safetensors"
    write_state(weights, models.create_model("fashion_resnet8", num_classes=10, seed=1).state_dict())
    spec = make_spec("source", model=f"fashion_resnet8@{weights}")
    [first] = run_grid([spec], tmp_path, executor="inline", data_root=data_root)
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    events: list[Event] = []
    [second] = run_grid([spec], tmp_path, executor="inline", data_root=data_root, on_event=events.append)
    assert isinstance(first, CellResult)
    assert isinstance(second, Failure)
    assert "does not match its checksum" in second.message
    assert isinstance(events[0], Warned)
    assert "cannot be read any more" in events[0].message


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"executor": "magic"}, "executor must be one of 'local', 'ray', 'inline', got 'magic'"),
        ({"address": "here:1"}, "address must be left out with executor 'local', got 'here:1'"),
        ({"checkpoint_seconds": -1}, "checkpoint_seconds must be at least 0, got -1"),
    ],
)
def test_bad_choices_are_refused_before_anything_runs(
    tmp_path: Path, make_spec: Make, choice: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run_grid([make_spec()], tmp_path / "out", **choice)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_one_bad_spec_stops_all_before_anything_runs(tmp_path: Path, make_spec: Make) -> None:
    with pytest.raises(ValueError, match="unknown method 'magic'"):
        run_grid([make_spec(), make_spec("magic")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_written_to_is_an_error_before_anything_runs(
    tmp_path: Path, make_spec: Make
) -> None:
    (tmp_path / "file").write_text("")
    for out, reason in ((tmp_path / "file", "it is a file"), (tmp_path / "file/x", "Not a directory")):
        message = f"out must be a folder that can be written to, got {str(out)!r} ({reason})"
        with pytest.raises(OSError, match=re.escape(message)):
            run_grid([make_spec()], out)


def test_a_directory_that_is_read_only_is_named_and_no_file_within_it(
    tmp_path: Path, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "tmp1234"))

    monkeypatch.setattr(os, "open", read_only)  # an administrator may write where others may not
    with pytest.raises(OSError) as caught:
        run_grid([make_spec()], tmp_path)
    assert str(caught.value) == (
        f"out must be a folder that can be written to, got {str(tmp_path)!r} (Read-only file system)"
    )
    assert list(tmp_path.iterdir()) == []


class UnknownError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FileNotFoundError("no file of weights at w2.st"), "no file of weights at w2.st"),
        (DamagedDataError("labels.npy is cut short"), "labels.npy is cut short"),
        (DamagedCellError("the cell is damaged"), "the cell is damaged"),
        (BusyError("another process is running it"), "another process is running it"),
        (TypeError("magic: no such option"), "magic: no such option"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device: cells/ab"),
        (SafetensorError("I/O error: No space left"), "SafetensorError: I/O error: No space left: cells/ab"),
        (OSError(errno.EACCES, "Permission denied", "labels.npy"), "Permission denied: labels.npy"),
        (OSError(), "OSError"),
        (RuntimeError("shapes\ndiffer"), "RuntimeError: shapes differ"),
        (KeyError("fc"), "KeyError: 'fc'"),
        (UnknownError("what"), "UnknownError: what"),
    ],
)
def test_an_error_is_told_in_its_own_words_and_an_unexpected_one_with_its_class(error: Exception, line: str) -> None:
    assert one_line(error, Path("cells/ab")) == line
