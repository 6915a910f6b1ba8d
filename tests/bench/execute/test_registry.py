"""The recipe of CONTRIBUTING for a new executor, followed."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from grotta.bench import CellSpec, CellTask, run_grid
from grotta.bench.events import Emit, Event, Waiting
from grotta.bench.execute import registry
from grotta.bench.execute.executor import Executor, Workers
from grotta.bench.execute.reporting import run_and_report


def backwards(tasks: Sequence[CellTask], workers: Workers, emit: Emit) -> None:
    """Run the most expensive cell first."""
    assert workers == Workers(3, "over there")
    for task in reversed(tasks):
        ends: list[Event] = []
        run_and_report(replace(task, wait=False), ends.append)
        for event in ends:
            emit(event)
        if isinstance(ends[-1], Waiting):
            run_and_report(replace(task, wait=True), emit)


def test_a_new_executor_is_one_module_and_one_entry(
    tmp_path: Path,
    data_root: Path,
    make_spec: Callable[..., CellSpec],
    contents: Callable[[Path], dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = SimpleNamespace(EXECUTOR=Executor(backwards, remote=True))
    monkeypatch.setitem(sys.modules, "backwards", module)  # type: ignore[arg-type]
    monkeypatch.setitem(registry._MODULES, "backwards", "backwards")
    specs = [make_spec("source"), make_spec("bn")]
    how = {"executor": "backwards", "workers": 3, "address": "over there"}
    outcomes = run_grid(specs, tmp_path / "new", data_root=data_root, **how)  # type: ignore[arg-type]
    assert [outcome.spec for outcome in outcomes] == specs
    run_grid(specs, tmp_path / "inline", executor="inline", data_root=data_root)
    assert contents(tmp_path / "new") == contents(tmp_path / "inline")
