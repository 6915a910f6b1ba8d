"""A real cluster of two nodes on this machine: one dies in the middle, one joins late, none sees our files."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grotta.bench import CellResult, CellSpec, Failure, load_results, run_grid
from grotta.bench.events import Event, Finished, Preparing, Progressed, Retried, Started, Waiting
from grotta.bench.execute.ray import node_data
from grotta.bench.store.results import cell_directory
from grotta.bench.store.store import hold_cell
from grotta.models.bundled import bundled_path

pytestmark = [pytest.mark.distributed, pytest.mark.filterwarnings("ignore")]

Make = Callable[..., CellSpec]
Contents = Callable[[Path], dict[str, bytes]]


@pytest.fixture(autouse=True)
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "240")  # read at import; a busy machine takes its time
    return pytest.importorskip("ray", reason="needs grotta[ray]")


@pytest.fixture
def cluster(ray: Any) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.add_node(**node)
    cluster.wait_for_nodes(timeout=240)
    yield cluster
    cluster.shutdown()


def grid(make_spec: Make) -> list[CellSpec]:
    methods = ("source", "tent", "lame", "note", "grotta")
    return [make_spec(method, batch_size=4) for method in methods]


def process_of(event: Started) -> int:
    return int(event.worker.removeprefix("process "))


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def raylet_of(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


def test_a_cluster_that_loses_a_node_gives_the_same_bytes_as_this_process(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, cluster: Any
) -> None:
    run_grid(grid(make_spec), tmp_path / "inline", executor="inline", data_root=data_root)
    [doomed] = cluster.worker_nodes
    raylet = raylet_of(doomed)
    events: list[Event] = []
    killed: list[CellSpec] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Progressed) and not killed:
            worker = process_of(next(e for e in reversed(events) if isinstance(e, Started) and e.spec == event.spec))
            if parent_of(worker) == raylet:
                killed.append(event.spec)
                for process in (worker, raylet):  # a machine that goes down takes all with it
                    os.kill(process, signal.SIGKILL)

    outcomes = run_grid(
        grid(make_spec),
        tmp_path / "ray",
        executor="ray",
        address=cluster.address,
        data_root=data_root,
        on_event=on_event,
        checkpoint_seconds=0,
    )
    assert killed, "no cell ran on the second node"
    assert all(isinstance(outcome, CellResult) for outcome in outcomes)
    assert killed[0] in {event.spec for event in events if isinstance(event, Retried)}
    assert any(isinstance(event, Preparing) for event in events)
    assert contents(tmp_path / "ray") == contents(tmp_path / "inline")


def test_a_ray_of_our_own_does_the_same_and_is_gone_afterwards(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, ray: Any
) -> None:
    specs = [make_spec("source"), make_spec("grotta", options={"alpha": 2.0}), make_spec("bn"), make_spec("tent")]
    run_grid(specs[2:], tmp_path / "inline", executor="inline", data_root=data_root)
    busy = hold_cell(cell_directory(tmp_path / "ray", specs[0]))  # the cheapest, so the first to be tried
    busy.__enter__()
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Finished) and event.spec == specs[3]:
            busy.__exit__(None, None, None)

    run_grid(specs[2:3], tmp_path / "ray", executor="inline", data_root=data_root)
    outcomes = run_grid(specs, tmp_path / "ray", executor="ray", workers=1, data_root=data_root, on_event=on_event)
    assert [type(outcome) for outcome in outcomes] == [CellResult, Failure, CellResult, CellResult]
    assert "alpha" in outcomes[1].message  # type: ignore[union-attr]
    assert [event.spec for event in events if isinstance(event, Waiting)] == [specs[0]]
    assert [event.spec for event in events if isinstance(event, Finished) and event.reused] == [specs[2]]
    assert len(load_results(tmp_path / "ray")) == 3
    assert contents(tmp_path / "inline").items() <= contents(tmp_path / "ray").items()
    assert not ray.is_initialized()


def test_nodes_that_do_not_see_our_files_are_sent_them_once(
    tmp_path: Path,
    data_root: Path,
    make_spec: Make,
    contents: Contents,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "root"
    shutil.copytree(data_root, root)
    shutil.copy(bundled_path("fashion_resnet8"), root / "net.safetensors")
    model = "fashion_resnet8@net.safetensors"
    specs = [make_spec(method, model=model, batch_size=4) for method in ("source", "bn", "tent", "lame", "note")]
    run_grid(specs, tmp_path / "inline", executor="inline", data_root=root)

    def unseen(*arguments: Any) -> node_data.Extract:  # the nodes are on our machine: to them, our files look changed
        taken = seen(*arguments)
        return replace(taken, status=(taken.status[0], taken.status[1] + 1))

    seen = node_data.extract
    monkeypatch.setattr(node_data, "extract", unseen)
    [early] = cluster.worker_nodes
    cluster.remove_node(early)
    caches = [tmp_path / name for name in ("first", "late")]
    cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, env_vars={"GROTTA_CACHE": str(caches[0])})
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Finished) and not caches[1].exists():
            caches[1].mkdir()
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, env_vars={"GROTTA_CACHE": str(caches[1])})

    how: Any = {"executor": "ray", "address": cluster.address, "data_root": root, "on_event": on_event}
    outcomes = run_grid(specs, tmp_path / "ray", **how)
    assert [outcome for outcome in outcomes if isinstance(outcome, Failure)] == []
    assert contents(tmp_path / "ray") == contents(tmp_path / "inline")
    received = [sorted(path.name for path in cache.glob("received/*")) for cache in caches]
    assert [Path(name).suffix for name in received[0]].count(".npy") == 2
    assert [Path(name).suffix for name in received[0]].count(".safetensors") == 1
    assert received[1] in ([], received[0])  # whether a cell still came to the late node is the scheduler's choice
    sent = [event.what for event in events if isinstance(event, Preparing) and event.what.startswith("sending")]
    assert {"sending cifar10-c fog, nodes: 2", "sending the weights net.safetensors, nodes: 2"} <= set(sent)
