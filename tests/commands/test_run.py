import errno
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import SafetensorError

from grotta.bench import CellSpec, CellTask, run_cell
from grotta.bench.events import Progressed
from grotta.bench.store.results import CellResult, cell_directory
from grotta.cli import main
from grotta.commands.run import to_text
from grotta.commands.running import cell_json
from grotta.report.command import command

Grotta = Callable[..., int]


@pytest.fixture
def grotta_run(tmp_path: Path, data_root: Path, command_line: Grotta) -> Grotta:
    usual = {"method": "tent", "dataset": "cifar10-c", "domains": "fog,snow", "model": "fashion_resnet8"}
    usual |= {"out": str(tmp_path), "data-root": str(data_root)}
    return lambda *words, **options: command_line("run", *words, **(usual | options))


def test_one_cell_is_run_and_shown(grotta_run: Grotta, capsys: pytest.CaptureFixture[str]) -> None:
    assert grotta_run(gamma="1e-4") == 0
    shown = capsys.readouterr()
    first, fog, snow, last = shown.out.splitlines()
    assert re.fullmatch(r"tent on cifar10-c, gamma 0\.0001: error [0-9.]+ % of all images and mean over domains", first)
    assert fog.split()[0] == "fog"
    assert snow.split()[0] == "snow"
    assert last.startswith("140 images, ")
    assert re.search(r"tent error [0-9.]+ % of all images so far, snow [0-9.]+ %", shown.err)
    assert "images/s" in shown.err


def test_an_iid_stream_is_shown_without_a_gamma(grotta_run: Grotta, capsys: pytest.CaptureFixture[str]) -> None:
    assert grotta_run(method="source", stream="iid") == 0
    assert capsys.readouterr().out.startswith("source on cifar10-c, iid stream: error ")


def test_an_output_that_cannot_be_written_is_named(
    tmp_path: Path, grotta_run: Grotta, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "afile"
    out.write_text("")
    assert grotta_run(out=str(out)) == 1
    message = f"grotta: out must be a folder that can be written to, got '{out}' (it is a file)"
    assert capsys.readouterr().err.strip() == message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (SafetensorError("I/O error: full"), "SafetensorError: I/O error: full"),
    ],
)
def test_a_full_disk_is_one_line_that_names_the_cell(
    tmp_path: Path,
    grotta_run: Grotta,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: str,
) -> None:
    def full(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("grotta.bench.cell.loop._run", full)
    assert grotta_run() == 1
    [cell] = (tmp_path / "cells").iterdir()
    assert capsys.readouterr().err.strip().splitlines()[-1] == f"grotta: {reason}: {cell}"


def test_json_holds_the_result_and_the_options(grotta_run: Grotta, capsys: pytest.CaptureFixture[str]) -> None:
    assert grotta_run("--json", "--option", "k=3", "--option", "output=laplacian", "--seed", "2") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["spec"]["options"] == {"k": 3, "output": "laplacian"}
    assert values["spec"]["seed"] == 2
    assert set(values["domain_errors"]) == {"fog", "snow"}
    assert values["error_mean_over_domains"] == pytest.approx(sum(values["domain_errors"].values()) / 2)
    assert values["seconds"] > 0


@pytest.mark.parametrize(
    ("snow", "error", "named"),
    [
        (50.0, 140 / 3, "error 46.67 % of all images, 45.00 % mean over domains"),  # snow is twice as long as fog
        (50.0, 45.0, "error 45.00 % of all images and mean over domains"),
        (50.001, 45.0, "error 45.00 % of all images and mean over domains"),
        (None, 40.0, "error 40.00 % of all images and mean over domains"),
    ],
)
def test_both_errors_are_named_and_equal_ones_said_once(snow: float | None, error: float, named: str) -> None:
    domain_errors = {"fog": 40.0} if snow is None else {"fog": 40.0, "snow": snow}
    result = CellResult(
        spec=CellSpec(method="bn", dataset="cifar10-c", domains=tuple(domain_errors), gamma=0.1),
        model="net",
        model_fingerprint="",
        stream_hash="",
        error=error,
        domain_errors=domain_errors,
        images=300,
        classes=10,
        provenance="published",
        versions={},
    )
    assert to_text(result).splitlines()[0] == f"bn on cifar10-c, gamma 0.1: {named}"
    values = cell_json(result)
    mean = sum(domain_errors.values()) / len(domain_errors)
    assert (values["error"], values["error_mean_over_domains"]) == (error, pytest.approx(mean))


def test_the_command_of_a_spec_runs_that_spec(
    tmp_path: Path, data_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = CellSpec(
        method="grotta",
        dataset="cifar10-c",
        domains=("snow", "fog"),
        gamma=0.01,
        model="fashion_resnet8",
        options={"k": 3, "affinity": "rbf"},
        period=35,
        stream="exhaustive",
        stream_seed=3,
        seed=4,
        batch_size=50,
    )
    words = command(spec).split()[1:]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--json", "--out", str(tmp_path), "--data-root", str(data_root)])
    assert json.loads(capsys.readouterr().out)["id"] == spec.id


def test_a_stopped_run_is_resumed_only_if_asked(
    tmp_path: Path, data_root: Path, grotta_run: Grotta, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = CellSpec(
        method="tent", dataset="cifar10-c", domains=("fog", "snow"), gamma=0.1, model="fashion_resnet8", batch_size=20
    )
    seen: list[int] = []

    def stop(event: object) -> None:
        seen.extend([1] if isinstance(event, Progressed) else [])
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cell(CellTask(spec, tmp_path, data_root, checkpoint_seconds=0), stop)
    assert grotta_run("--batch-size", "20") == 2
    assert "resume it with --resume" in capsys.readouterr().err
    assert grotta_run("--batch-size", "20", "--resume") == 0
    (cell_directory(tmp_path, spec) / "checkpoint.safetensors").touch()  # as a kill at the very end leaves it
    assert grotta_run("--batch-size", "20") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"dataset": "magic"}, "dataset must be folder:PATH"),
        ({"gamma": "0"}, "gamma must be positive, got 0.0"),
        ({"gamma": "-1"}, "gamma must be positive, got -1.0"),
        ({"domains": "magic"}, "domains"),
        ({"domains": ""}, "domains must be one or more different values"),
        ({"option": "k"}, "option must be KEY=VALUE"),
        ({"option": "magic=1"}, "magic"),
        ({"option": "lr=-1"}, "lr must be"),
        ({"method": "grotta", "option": "capacity=99999999999999"}, "capacity must fit in this machine's memory of"),
        ({"method": "rotta", "option": "capacity=99999999999999"}, "the options must fit in this machine's memory"),
        ({"model": "magic"}, "model must be one of"),
        (
            {"model": "fashion_resnet8@/nowhere/file.pt"},
            "an existing file of weights, got /nowhere/file.pt",
        ),
        ({"device": "magic"}, "device must be one that works here"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2_and_leaves_nothing(
    tmp_path: Path, grotta_run: Grotta, capsys: pytest.CaptureFixture[str], options: dict[str, str], message: str
) -> None:
    code = grotta_run(**options)
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""
    assert code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_stream_without_labels_is_told_by_what_can_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        pixels = np.full((32, 32, 3), 20 * number, np.uint8)
        (tmp_path / "cams").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "cams" / f"{number}.png")
    with pytest.raises(SystemExit) as stop:
        main(
            f"run --method bn --stream recorded --dataset folder:{tmp_path / 'cams'} --model fashion_resnet8 "
            f"--image-size 32 --batch-size 4 --out {tmp_path / 'runs'}".split()
        )
    shown = capsys.readouterr().out
    assert (stop.value.code, "error" in shown) == (0, False)
    measured = r"agreement [\d.]+ % with the source network, entropy [\d.]+ nats, confidence [\d.]+ %, predicted 0 "
    assert re.search(rf"no labels; {measured}", shown)
