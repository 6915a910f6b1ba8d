import errno
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from grotta.bench import CellResult, Failure
from grotta.bench.events import Emit
from grotta.bench.plan import Plan
from grotta.bench.run import run_plan

Grotta = Callable[..., int]


@pytest.fixture
def grotta_bench(tmp_path: Path, data_root: Path, command_line: Grotta, monkeypatch: pytest.MonkeyPatch) -> Grotta:
    def inline(plan: Plan, on_event: Emit) -> list[CellResult | Failure]:
        return run_plan(replace(plan, executor="inline"), on_event)

    # processes are tested elsewhere; here, what is made of them
    monkeypatch.setattr("grotta.commands.running.run_plan", inline)
    usual = {"dataset": "cifar10-c", "methods": "source,bn", "gammas": "1e-1,1e-4", "domains": "fog"}
    usual |= {"model": "fashion_resnet8", "out": str(tmp_path / "out"), "data-root": str(data_root)}
    return lambda *words, **options: command_line("bench", *words, **(usual | options))


def test_it_ends_with_the_table_and_the_report(
    grotta_bench: Grotta, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert grotta_bench() == 0
    shown = capsys.readouterr()
    assert "Source" in shown.out
    assert "BN" in shown.out
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in shown.out
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000
    assert "[4/4]" in shown.err
    assert re.search(r"Cells took \d+:\d\d in total on all workers: .*(bn|source) \d+ %", shown.err)


def test_a_second_call_prints_the_same_table(grotta_bench: Grotta, capsys: pytest.CaptureFixture[str]) -> None:
    grotta_bench()
    first = capsys.readouterr().out
    grotta_bench()
    assert capsys.readouterr().out == first


def test_a_failed_cell_is_reported_and_the_code_is_1(
    grotta_bench: Grotta, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from grotta.methods import BN

    monkeypatch.setattr(BN, "infer", None)
    assert grotta_bench("--json") == 1
    outcome = json.loads(capsys.readouterr().out)
    assert [cell["label"] for cell in outcome["cells"]] == ["source", "source"]
    assert [cell["spec"]["method"] for cell in outcome["failed"]] == ["bn", "bn"]


def test_a_bench_where_everything_fails_still_ends_in_order(
    tmp_path: Path, grotta_bench: Grotta, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.pt").write_text("<html>not found</html>")
    assert grotta_bench(model=f"fashion_resnet8@{tmp_path}/broken.pt") == 1
    shown = capsys.readouterr()
    assert "broken.pt" in shown.err
    assert "Traceback" not in shown.err + shown.out


def test_ctrl_c_says_how_to_resume(
    grotta_bench: Grotta, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grotta.commands.running.run_plan", interrupted)
    assert grotta_bench() == 130
    assert "run the same command again to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": "source,magic"}, "unknown method 'magic'"),
        ({"dataset": "magic"}, "dataset must be folder:PATH"),
        ({"gammas": "1e-1,0"}, "gamma must be positive, got 0.0"),
        ({"gammas": "1e-1,-2"}, "gamma must be positive, got -2.0"),
        ({"gammas": "a,b"}, "gammas must be numbers separated by commas, got 'a,b'"),
        ({"gammas": ""}, "gammas must be one or more different values, got []"),
        ({"stream": "iid"}, "gammas must be at most one for an iid stream, which ignores it, got [0.1, 0.0001]"),
        (
            {"preset": "fast"},
            "paper, official for method 'source', got 'fast' (only grotta",
        ),
        ({"domains": "magic"}, "domains"),
        ({"workers": "0"}, "workers must be at least 1"),
        ({"seeds": "0"}, "seeds must be in [1, 10001), got 0"),
        ({"seeds": "1000000000"}, "seeds must be in [1, 10001), got 1000000000"),
        ({"checkpoint-seconds": "-1"}, "checkpoint_seconds must be at least 0"),
        ({"address": "here:1"}, "address must be left out with executor 'local', got 'here:1'"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2_and_nothing_runs(
    grotta_bench: Grotta, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, str], message: str
) -> None:
    assert grotta_bench(**options) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written_is_one_line_and_code_1(
    grotta_bench: Grotta, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("a file")
    assert grotta_bench() == 1
    shown = capsys.readouterr()
    assert (
        shown.err.strip()
        == f"grotta: out must be a folder that can be written to, got '{tmp_path / 'out'}' (it is a file)"
    )
    assert len(shown.err.strip().splitlines()) == 1


def test_an_ascii_terminal_gets_the_table(grotta_bench: Grotta, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    assert grotta_bench() == 0
    shown = written.getvalue().decode("ascii")
    assert "gamma" in shown
    assert "Source" in shown


def test_a_full_disk_keeps_the_outcome_and_names_the_file(
    grotta_bench: Grotta, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("grotta.report.write._files.write", full)
    assert grotta_bench("--json") == 1
    shown = capsys.readouterr()
    outcome = json.loads(shown.out)
    assert (len(outcome["cells"]), outcome["report"]) == (4, None)
    assert all(cell["error_mean_over_domains"] == cell["domain_errors"]["fog"] for cell in outcome["cells"])
    page = tmp_path / "out" / "report.html"
    assert f"cannot write {page}: No space left on device; the results of the cells are kept" in shown.err
    assert grotta_bench() == 1
    assert "Source" in capsys.readouterr().out
