"""A run's directory of version 0.1.0 as it was before running, showing and comparing had a package each.

``before/finished`` has the ten methods of the paper on the small data set of these tests, ``before/stopped`` two cells
with a checkpoint; both were made by that version with one thread on an AVX-512 machine.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from grotta.bench import CellResult, CellSpec, Event, load_results, run_grid
from grotta.bench.events import Finished, Warned
from grotta.methods.registry import PAPER_METHODS

Make = Callable[..., CellSpec]
BEFORE = Path(__file__).parent / "before"


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    shutil.copytree(BEFORE / "finished", tmp_path / "finished")
    return tmp_path / "finished"


def test_its_results_are_read_and_not_run_again(finished: Path, data_root: Path, make_spec: Make) -> None:
    events: list[Event] = []
    specs = [make_spec(method) for method in PAPER_METHODS]
    outcomes = run_grid(specs, finished, executor="inline", data_root=data_root, on_event=events.append)
    assert [event.reused for event in events if isinstance(event, Finished)] == [True] * 10
    assert not [event for event in events if isinstance(event, Warned)]
    assert all(isinstance(outcome, CellResult) and not outcome.method_fingerprint for outcome in outcomes)
    assert len(load_results(finished)) == 10


def test_all_ten_methods_still_give_its_bytes(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    specs = [make_spec(method) for method in PAPER_METHODS]
    now = {result.spec.id: result for result in run_grid(specs, tmp_path, executor="inline", data_root=data_root)}
    before = {result.spec.id: result for result in load_results(BEFORE / "finished")}
    assert now.keys() == before.keys()
    same_machine = torch.__version__ == next(iter(before.values())).versions["torch"] and (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
    )
    for key, old in before.items():
        new = now[key]
        assert isinstance(new, CellResult)
        assert (new.stream_hash, new.data_fingerprint) == (old.stream_hash, old.data_fingerprint)
        assert (new.model, new.model_fingerprint) == (old.model, old.model_fingerprint)
        if same_machine:
            assert (new.directory / "records.npz").read_bytes() == (old.directory / "records.npz").read_bytes()
            assert (new.error, new.domain_errors, new.warnings) == (old.error, old.domain_errors, old.warnings)
        else:  # other kernels round otherwise, which may turn a few predictions around
            assert np.mean(new.predictions != old.predictions) < 0.05


def test_a_cell_that_it_left_unfinished_starts_again_and_says_why(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    shutil.copytree(BEFORE / "stopped", tmp_path / "stopped")
    specs = [make_spec("tent", batch_size=40), make_spec("rotta", batch_size=40, options={"capacity": 8})]
    events: list[Event] = []
    run_grid(specs, tmp_path / "stopped", executor="inline", data_root=data_root, on_event=events.append)
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert len(warned) == 2
    assert all("cannot be used, the cell starts again: it was written with other versions" in text for text in warned)
    run_grid(specs, tmp_path / "new", executor="inline", data_root=data_root)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "new")
