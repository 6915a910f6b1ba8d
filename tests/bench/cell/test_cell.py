import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from torch import nn

import grotta.data
import grotta.streams
from grotta import methods, models
from grotta._files import BusyError
from grotta.bench import CellSpec, CellTask, Event, Progress, load_results, run_cell, run_grid
from grotta.bench.cell import loop as cell_module
from grotta.bench.cell.adapter import warnings_about
from grotta.bench.events import Progressed, Warned
from grotta.bench.store.results import cell_directory
from grotta.bench.store.store import hold_cell

Make = Callable[..., CellSpec]
Contents = Callable[[Path], dict[str, bytes]]
OwnFiles = tuple[Path, Path]
Change = Callable[[Path, Path], None]


class StoppedError(Exception):
    pass


def stop_after(batches: int) -> Callable[[Event], None]:
    seen = []

    def on_event(event: Event) -> None:
        seen.extend([event] if isinstance(event, Progressed) else [])
        if len(seen) == batches:
            raise StoppedError

    return on_event


def run_again(spec: CellSpec, out: Path, root: Path) -> list[str]:
    """Run a cell that may be finished; gives the warnings."""
    events: list[Event] = []
    run_grid([spec], out, executor="inline", data_root=root, on_event=events.append)
    return [event.message for event in events if isinstance(event, Warned)]


def test_the_error_is_that_of_a_plain_loop(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    spec = make_spec("grotta", options={"k": 3}, stream_seed=4, seed=5, batch_size=30)
    result = run_cell(CellTask(spec, tmp_path, data_root))

    data = grotta.data.load("cifar10-c", root=data_root, domains=spec.domains)
    labels = [data.labels(domain) for domain in spec.domains]
    stream = grotta.streams.ptta(labels, 10, 0.1, period=50, seed=4)
    adapter = methods.create("grotta", models.create_model("fashion_resnet8", "bundled"), seed=5, k=3)
    errors = {}
    for domain, indices, truth in zip(spec.domains, stream.indices, labels):
        wrong = 0
        for start in range(0, 140, 30):
            batch = indices[start : start + 30]
            wrong += (adapter(data.images(domain, batch)).argmax(1).numpy() != truth[batch]).sum()
        errors[domain] = 100.0 * wrong / 140
    assert result.domain_errors == errors
    assert result.error == pytest.approx(np.mean(list(errors.values())))
    assert result.stream_hash == stream.hash


def test_every_method_gets_the_same_stream(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    def stream_hash(spec: CellSpec) -> str:
        return run_cell(CellTask(spec, tmp_path, data_root)).stream_hash

    first = stream_hash(make_spec("source"))
    assert stream_hash(make_spec("bn", seed=7, batch_size=70)) == first
    assert stream_hash(make_spec("source", stream_seed=1)) != first
    assert stream_hash(make_spec("source", gamma=1.0)) != first
    assert stream_hash(make_spec("source", stream="iid")) != first


@pytest.mark.parametrize("method", ["tent", "note", "rotta", "grotta", "cotta"])
def test_a_cell_that_is_stopped_and_resumed_has_the_same_bytes(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, method: str
) -> None:
    options = {"cotta": {"views": 2}}.get(method, {})
    spec = make_spec(method, options=options, batch_size=70)
    run_cell(CellTask(spec, tmp_path / "whole", data_root))
    for batches in (2, 3):
        with pytest.raises(StoppedError):
            run_cell(CellTask(spec, tmp_path / "parts", data_root, checkpoint_seconds=0), stop_after(batches))
    assert load_results(tmp_path / "parts") == []
    run_cell(CellTask(spec, tmp_path / "parts", data_root))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_resuming_does_not_repeat_what_is_done(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    with pytest.raises(StoppedError):
        run_cell(CellTask(make_spec(), tmp_path, data_root, checkpoint_seconds=0), stop_after(5))
    events: list[Event] = []
    result = run_cell(CellTask(make_spec(), tmp_path, data_root), events.append)
    seen: list[Progress] = [event.progress for event in events if isinstance(event, Progressed)]
    assert [progress.images for progress in seen] == [268, 280]  # the fourth batch was the last one saved
    assert [progress.domain_images for progress in seen] == [128, 140]
    assert seen[-1].error == result.error
    assert seen[-1].domain_error == result.domain_errors["snow"]


def test_a_kill_between_the_two_files_of_a_checkpoint_does_no_harm(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents
) -> None:
    spec = make_spec("tent")
    run_cell(CellTask(spec, tmp_path / "whole", data_root))
    for name, batches in (("early", 3), ("late", 5)):
        with pytest.raises(StoppedError):
            run_cell(CellTask(spec, tmp_path / name, data_root, checkpoint_seconds=0), stop_after(batches))
    early, late = (cell_directory(tmp_path / name, spec) for name in ("early", "late"))
    shutil.copy(late / "checkpoint.npz", early / "checkpoint.npz")  # the records are always written first
    run_cell(CellTask(spec, tmp_path / "early", data_root))
    assert contents(tmp_path / "early") == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", ["checkpoint.npz", "checkpoint.safetensors"])
def test_a_damaged_checkpoint_is_not_used(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, name: str
) -> None:
    run_cell(CellTask(make_spec(), tmp_path / "whole", data_root))
    with pytest.raises(StoppedError):
        run_cell(CellTask(make_spec(), tmp_path / "parts", data_root, checkpoint_seconds=0), stop_after(3))
    path = cell_directory(tmp_path / "parts", make_spec()) / name
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="cannot be used, the cell starts again"):
        run_cell(CellTask(make_spec(), tmp_path / "parts", data_root))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_checkpoint_of_other_software_is_not_used(
    tmp_path: Path, data_root: Path, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoppedError):
        run_cell(CellTask(make_spec(), tmp_path, data_root, checkpoint_seconds=0), stop_after(3))
    monkeypatch.setattr("grotta.bench.cell.checkpoint.versions", lambda device: {"torch": "1.0"})
    with pytest.warns(UserWarning, match="other versions of the software"):
        run_cell(CellTask(make_spec(), tmp_path, data_root))


@pytest.fixture
def own_files(tmp_path: Path, data_root: Path) -> tuple[Path, Path]:
    """A data root that a test may change, and the file of weights in it."""
    root, weights = tmp_path / "data", tmp_path / "data" / "weights.safetensors"
    shutil.copytree(data_root, root)
    save_file(models.create_model("fashion_resnet8", num_classes=10, seed=1).state_dict(), weights)
    return root, weights


def other_images(folder: Path, weights: Path) -> None:
    np.save(folder / "fog.npy", 255 - np.load(folder / "fog.npy"))


def fewer_images(folder: Path, weights: Path) -> None:
    for path in folder.iterdir():
        np.save(path, np.load(path)[: 5 * 70])


def other_labels(folder: Path, weights: Path) -> None:
    np.save(folder / "labels.npy", 9 - np.load(folder / "labels.npy"))


def other_weights(folder: Path, weights: Path) -> None:
    save_file(models.create_model("fashion_resnet8", num_classes=10, seed=2).state_dict(), weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_images, r"other data \(images\)"),
        (fewer_images, r"other data \(order or labels\)"),
        (other_labels, r"other data \(order or labels\)"),
        (other_weights, "another model"),
    ],
)
def test_a_checkpoint_of_other_data_or_weights_is_not_used(
    tmp_path: Path, own_files: OwnFiles, make_spec: Make, contents: Contents, change: Change, message: str
) -> None:
    root, weights = own_files
    spec = make_spec("tent", model="fashion_resnet8@weights.safetensors")
    with pytest.raises(StoppedError):
        run_cell(CellTask(spec, tmp_path / "out", root, checkpoint_seconds=0), stop_after(5))
    change(root / "CIFAR-10-C", weights)
    with pytest.warns(UserWarning, match=f"cannot be used, the cell starts again: .*{message}"):
        run_cell(CellTask(spec, tmp_path / "out", root))
    run_cell(CellTask(spec, tmp_path / "whole", root))
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "columns",
    [
        {"predictions": np.zeros(3, np.uint16)},
        {"size": np.full(6, 10**6)},
        {"domain": np.full(6, 70)},
        {"batch": np.zeros((6, 2))},
        {"origin": np.zeros(3, np.uint8)},
    ],
)
def test_no_checkpoint_can_make_a_cell_fail(
    tmp_path: Path, data_root: Path, make_spec: Make, columns: dict[str, np.ndarray]
) -> None:
    with pytest.raises(StoppedError):
        run_cell(CellTask(make_spec(), tmp_path, data_root, checkpoint_seconds=0), stop_after(3))
    path = cell_directory(tmp_path, make_spec()) / "checkpoint.npz"
    with np.load(path) as file:
        before = dict(file)
    np.savez(path, **{**before, **columns})
    with pytest.warns(UserWarning, match="cannot be used, the cell starts again"):
        assert run_cell(CellTask(make_spec(), tmp_path, data_root)).images == 280


def test_a_finished_cell_is_read_and_not_run(
    tmp_path: Path, data_root: Path, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_cell(CellTask(make_spec(), tmp_path, data_root))
    monkeypatch.setattr(cell_module, "open_inputs", None)
    assert run_cell(CellTask(make_spec(), tmp_path, data_root)) == result
    assert sorted(path.name for path in result.directory.iterdir()) == [
        ".lock",
        "records.npz",
        "result.json",
        "spec.json",
        "timing.json",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_weights, r"the weights of fashion_resnet8@weights\.safetensors"),
        (other_labels, "the labels of cifar10-c"),
        (other_images, "the images of cifar10-c"),
    ],
)
def test_a_cell_of_other_weights_labels_or_images_runs_again(
    tmp_path: Path, own_files: OwnFiles, make_spec: Make, contents: Contents, change: Change, message: str
) -> None:
    root, weights = own_files
    spec = make_spec("bn", model="fashion_resnet8@weights.safetensors")
    run_cell(CellTask(spec, tmp_path / "out", root))
    change(root / "CIFAR-10-C", weights)
    [warning] = run_again(spec, tmp_path / "out", root)
    assert re.search(f"{spec.id} is out of date: {message}.* have changed; it is run again", warning)
    run_cell(CellTask(spec, tmp_path / "new", root))
    assert contents(tmp_path / "out") == contents(tmp_path / "new")


def test_a_result_outlives_its_weights_and_its_data(
    tmp_path: Path, own_files: tuple[Path, Path], make_spec: Make
) -> None:
    root, weights = own_files
    spec = make_spec("bn", model="fashion_resnet8@weights.safetensors")
    result = run_cell(CellTask(spec, tmp_path / "out", root))
    weights.unlink()
    assert run_again(spec, tmp_path / "out", root) == []
    shutil.rmtree(root)
    assert run_again(spec, tmp_path / "out", root) == []
    assert load_results(tmp_path / "out") == [result]


def test_a_checkpoint_beside_a_result_is_removed(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    result = run_cell(CellTask(make_spec(), tmp_path, data_root))
    for name in ("checkpoint.npz", "checkpoint.safetensors"):
        (result.directory / name).write_bytes(b"a kill came before it was removed")
    assert run_again(make_spec(), tmp_path, data_root) == []
    assert load_results(tmp_path) == [result]
    assert not list(result.directory.glob("checkpoint*"))


def test_a_damaged_cell_runs_again(tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents) -> None:
    result = run_cell(CellTask(make_spec(), tmp_path, data_root))
    before = contents(tmp_path)
    (result.directory / "records.npz").unlink()
    [warning] = run_again(make_spec(), tmp_path, data_root)
    assert "records.npz is missing; it is run again" in warning
    assert contents(tmp_path) == before


def test_a_full_disk_leaves_nothing_that_counts(
    tmp_path: Path, data_root: Path, make_spec: Make, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = cell_module.write

    def full(path: Path, content: bytes) -> None:
        if path.name == "result.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(cell_module, "write", full)
        with pytest.raises(OSError, match="No space left"):
            run_cell(CellTask(make_spec(), tmp_path, data_root))
    assert load_results(tmp_path) == []
    run_cell(CellTask(make_spec(), tmp_path, data_root))
    assert len(load_results(tmp_path)) == 1


def test_a_cell_that_someone_runs_is_busy(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    with hold_cell(cell_directory(tmp_path, make_spec())), pytest.raises(BusyError):
        run_cell(CellTask(make_spec(), tmp_path, data_root, wait=False))


def test_domains_that_are_short_for_the_memory_are_warned_of(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    warned = run_cell(CellTask(make_spec("grotta"), tmp_path, data_root))
    assert "shorter than 3 times the memory of 1030 images" in warned.warnings[0]
    assert run_cell(CellTask(make_spec("grotta", options={"capacity": 40}), tmp_path, data_root)).warnings == ()
    assert run_cell(CellTask(make_spec("source"), tmp_path, data_root)).warnings == ()


@pytest.mark.parametrize(
    ("method", "options", "room"),
    [
        ("grotta", {}, 2000),  # two a class
        ("grotta", {"capacity": 1}, 1000),
        ("rotta", {"capacity": 70}, 70),
        ("note", {}, 64),
    ],
)
def test_the_memory_is_as_large_as_what_it_holds_when_it_is_full(
    method: str, options: dict[str, int], room: int
) -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1000)
    )
    adapter = methods.create(method, net.eval(), **options)
    assert warnings_about(adapter, {"fog": 3 * room}) == ()
    [warning] = warnings_about(adapter, {"fog": 3 * room - 1, "snow": 9000})
    assert f"1 of 2 domains are shorter than 3 times the memory of {room} images (fog has" in warning


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"preset": "magic"}, "preset must be one of paper, .* for method 'tent', got 'magic'"),
        ({"stream": "magic"}, "stream must be one of 'ptta'"),
        ({"dataset": "magic"}, "dataset must be folder:PATH"),
        ({"domains": ("magic",)}, "domains"),
        ({"model": "magic"}, "got 'magic'"),
        ({"options": {"magic": 1}}, "magic"),
    ],
)
def test_what_does_not_exist_is_named(
    tmp_path: Path, data_root: Path, make_spec: Make, change: dict[str, object], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        run_cell(CellTask(make_spec(**change), tmp_path, data_root))
    assert load_results(tmp_path) == []
