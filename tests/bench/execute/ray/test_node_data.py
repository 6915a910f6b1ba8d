"""What a cell takes with it to a machine that has neither its pictures nor its weights."""

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from grotta.bench import CellSpec, CellTask, run_cell
from grotta.bench.execute.ray.node import Delivery, lacking_on_node, run_on_node, scratch_name
from grotta.bench.execute.ray.node_data import PART_BYTES, Extract, extract, extract_array, inputs_to_send
from grotta.models.bundled import bundled_path

Make = Callable[..., CellSpec]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a machine that has nothing yet."""
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def away(tmp_path: Path, data_root: Path) -> Path:
    """A data root that can be taken away, with a network's weights in it."""
    root = tmp_path / "away"
    shutil.copytree(data_root, root)
    shutil.copy(bundled_path("fashion_resnet8"), root / "net.safetensors")
    return root


def test_an_extract_of_a_slice_has_the_bytes_of_the_slice(tmp_path: Path) -> None:
    whole = np.random.default_rng(0).integers(0, 256, (50, 4, 5, 3), np.uint8)
    np.save(tmp_path / "array.npy", whole)
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    for piece, expected in ((mapped, whole), (mapped[20:30], whole[20:30]), (mapped[10:][5:9], whole[15:19])):
        found = extract_array("a slice", piece)
        assert b"".join(part.tobytes() for part in found.parts()) == expected.tobytes()
    for other in (whole, mapped[::2]):
        with pytest.raises(TypeError, match="a slice must be an array that is mapped from a file"):
            extract_array("a slice", other)


def test_large_files_are_sent_in_parts(tmp_path: Path) -> None:
    content = np.arange(PART_BYTES // 4 + 7, dtype=np.uint32).tobytes()
    (tmp_path / "large").write_bytes(content)
    parts = list(extract("large", tmp_path / "large").parts())
    assert [part.nbytes for part in parts] == [PART_BYTES, len(content) - PART_BYTES]
    assert b"".join(part.tobytes() for part in parts) == content


def test_a_machine_that_sees_the_file_needs_no_copy(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "weights.pt"
    path.write_bytes(b"weights")
    taken = extract("the weights", path)
    assert taken.place() == (path, 0)
    taken.receive(pytest.fail("nothing is to be read") for _ in range(1))
    assert not cache.exists()


def test_what_is_received_is_there_once_and_whole(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "weights.pt"
    path.write_bytes(b"weights")
    taken = extract("the weights", path)
    path.write_bytes(b"other weights")  # as on a machine with another file at that place
    assert taken.place() is None

    def broken() -> object:
        yield np.frombuffer(b"wei", np.uint8)
        raise OSError("the network is down")

    with pytest.raises(OSError, match="the network is down"):
        taken.receive(broken())  # type: ignore[arg-type]
    assert taken.place() is None
    assert not [file for file in cache.glob("received/*") if file.suffix != ".lock"]
    taken.receive([np.frombuffer(b"wei", np.uint8), np.frombuffer(b"ghts", np.uint8)])
    received, start = taken.place() or pytest.fail("it did not arrive")
    assert (received.read_bytes(), start, received.suffix) == (b"weights", 0, ".pt")
    taken.receive(pytest.fail("nothing is to be read") for _ in range(1))


def test_a_cell_runs_on_what_it_brings_as_on_what_is_here(
    tmp_path: Path, cache: Path, away: Path, make_spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spec = make_spec("grotta", batch_size=70, model="fashion_resnet8@net.safetensors")
    run_cell(CellTask(spec, tmp_path / "here", away))
    sent_inputs = pickle.loads(pickle.dumps(inputs_to_send(spec, away)))
    parts = {taken: list(taken.parts()) for taken in sent_inputs.extracts}
    assert [taken.what for taken in parts] == ["cifar10-c fog", "cifar10-c snow", "the weights net.safetensors"]
    assert lacking_on_node(list(parts)) == []
    shutil.rmtree(away)
    assert lacking_on_node(list(parts)) == list(parts)
    with pytest.raises(FileNotFoundError, match="the weights net.safetensors is not on "):
        sent_inputs(spec, "cpu")
    for taken, sent in parts.items():
        taken.receive(sent)
    out, mailbox = tmp_path / "there", SimpleNamespace(put=SimpleNamespace(remote=lambda event: None))
    delivery = run_on_node(CellTask(spec, out, away, open_inputs=sent_inputs), scratch_name(out), mailbox)
    assert isinstance(delivery, Delivery), delivery
    for name in ("spec.json", "result.json", "records.npz"):
        assert delivery.files[name] == (tmp_path / "here" / "cells" / spec.id / name).read_bytes()


def test_a_changed_file_is_another_extract(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "array.npy"
    path.write_bytes(b"old")
    old = extract("an array", path)
    path.write_bytes(b"new")
    path.touch()
    new = replace(extract("an array", path), path=path)
    if old.status == new.status:  # a clock too coarse to tell them apart
        new = replace(new, status=(3, new.status[1] + 1))
    path.unlink()
    for taken, content in ((old, b"old"), (new, b"new")):
        taken.receive([np.frombuffer(content, np.uint8)])
    assert {_content(old), _content(new)} == {b"old", b"new"}


def _content(taken: Extract) -> bytes:
    path, _ = taken.place() or pytest.fail("it is not here")
    return path.read_bytes()
