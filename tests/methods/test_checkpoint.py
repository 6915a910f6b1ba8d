"""Adapters on disk: whole or not at all, and only where they fit."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import grotta
from grotta.checks import batches, small_model
from grotta.methods import registry

RUN = textwrap.dedent(
    """
    import sys, torch, grotta
    from pathlib import Path
    from grotta.checks import batches, small_model
    from safetensors.torch import save_file

    folder = Path(sys.argv[1])
    path, model = folder / "adapter.safetensors", small_model()
    adapter = grotta.load(path, model) if path.exists() else grotta.create("grotta", model, seed=5)
    for number, x in enumerate(batches((16, 64, 3) * 6), start=1):
        if number <= adapter.step:
            continue
        probs = adapter(x)
        save_file({"probs": probs}, folder / f"{number}.safetensors")
        adapter.save(path)
        print(number, flush=True)
    """
)


def test_a_run_killed_and_resumed_gives_the_bits_of_one_that_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = grotta.create("grotta", small_model(), seed=5)
    expected = [adapter(x) for x in batches((16, 64, 3) * 6)]
    with subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if int(line) >= 11:
                os.kill(run.pid, signal.SIGKILL)
                break
    assert run.returncode == -signal.SIGKILL
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path)])
    exec(RUN, {})  # what is left, here
    for number, probs in enumerate(expected, start=1):
        assert torch.equal(load_file(tmp_path / f"{number}.safetensors")["probs"], probs), f"batch {number}"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    adapter = grotta.create("grotta", small_model(), seed=2, k=3, mean=[0.5] * 3, std=[0.5] * 3)
    for x in batches():
        adapter(x)
    adapter.save(tmp_path / "adapter.safetensors")
    return tmp_path / "adapter.safetensors"


def test_options_come_back(saved: Path) -> None:
    adapter = grotta.load(saved, small_model())
    assert (adapter.seed, adapter.mean, adapter.arguments["k"]) == (2, [0.5] * 3, 3)


def test_another_model_is_refused(saved: Path) -> None:
    model = small_model()
    model[6].bias.data[0] += 1e-3
    with pytest.raises(ValueError, match="saved with another model"):
        grotta.load(saved, model)


@pytest.mark.parametrize("damage", ["cut", "flip", "noise", "empty"])
def test_a_damaged_file_is_refused(saved: Path, damage: str) -> None:
    data = bytearray(saved.read_bytes())
    if damage == "cut":
        data = data[:-100]
    elif damage == "flip":
        data[-100] ^= 1
    elif damage == "noise":
        data[:] = b"<html>not found</html>" * 50
    else:
        data.clear()
    saved.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        grotta.load(saved, small_model())


def rewrite(path: Path, **changes: str) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(load_file(path), path, {**metadata, **changes})


def test_another_version_is_refused(saved: Path) -> None:
    rewrite(saved, format_version="99", grotta="9.9")
    with pytest.raises(ValueError, match=r"format version 99, written by grotta 9\.9"):
        grotta.load(saved, small_model())


def test_another_kind_of_file_is_refused(saved: Path) -> None:
    save_file({"weight": torch.zeros(2)}, saved)
    with pytest.raises(ValueError, match="not one that an adapter wrote"):
        grotta.load(saved, small_model())


def test_a_method_that_is_not_registered_is_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._METHODS, "grotta")
    with pytest.raises(ValueError, match="unknown method 'grotta'"):
        grotta.load(saved, small_model())


def test_a_changed_option_is_noticed(saved: Path) -> None:
    rewrite(saved, arguments='{"seed": 1}')
    with pytest.raises(ValueError, match="damaged"):
        grotta.load(saved, small_model())


def test_every_flipped_bit_of_the_header_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    start = data.index(b'"__metadata__"')
    for position in range(start, start + 600, 7):
        broken = bytearray(data)
        broken[position] ^= 1
        saved.write_bytes(broken)
        with pytest.raises(ValueError, match="damaged|not one that an adapter wrote|format version"):
            grotta.load(saved, small_model())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no adapter at"):
        grotta.load(tmp_path / "none.safetensors", small_model())


def test_a_failed_save_leaves_the_old_file_and_no_other(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    adapter = grotta.load(saved, small_model())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("grotta.methods.checkpoint.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        adapter.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_arrays_as_options_are_saved_as_numbers(tmp_path: Path) -> None:
    adapter = grotta.create("source", small_model(), mean=torch.tensor([0.5, 0.5, 0.5]))
    adapter.save(tmp_path / "a.safetensors")
    assert json.loads(json.dumps(grotta.load(tmp_path / "a.safetensors", small_model()).arguments["mean"])) == [0.5] * 3
