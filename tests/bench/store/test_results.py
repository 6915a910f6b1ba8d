import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import grotta
from grotta.bench import CellSpec, CellTask, load_results, run_cell
from grotta.bench.store.results import cell_directory
from grotta.bench.store.versions import code_digest, versions

Make = Callable[..., CellSpec]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, data_root: Path, make_spec: Make) -> Path:
    out = tmp_path_factory.mktemp("finished")
    for method in ("source", "bn"):
        run_cell(CellTask(make_spec(method), out, data_root))
    return out


@pytest.fixture
def out(tmp_path: Path, finished: Path) -> Path:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def with_values(**values: object) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return damage


def change_a_domain_error(path: Path) -> None:
    content = json.loads(path.read_text())
    content["domain_errors"]["fog"] += 1e-9
    path.write_text(json.dumps(content))


def add_a_domain(path: Path) -> None:
    content = json.loads(path.read_text())
    content["domain_errors"]["frost"] = 10.0
    path.write_text(json.dumps(content))


def swap_the_domains(path: Path) -> None:
    content = json.loads(path.read_text())
    content["domain_errors"] = dict(reversed(content["domain_errors"].items()))
    path.write_text(json.dumps(content))


GARBLED: list[Callable[[Path], None]] = [
    truncate,
    lambda path: path.write_text("[]") and None,
    lambda path: path.write_text("[" * 100_000) and None,
    lambda path: path.write_bytes(b"\xff\xfe") and None,
    with_values(spec={"method": "bn"}),
    with_values(spec=None),
    change_a_domain_error,
    add_a_domain,
    swap_the_domains,
    with_values(domain_errors={}),
    with_values(domain_errors=None),
    with_values(domain_errors=[1, 2]),
    with_values(error=None),
    with_values(error="12.5"),
    with_values(error=10**400),
    with_values(images=True),
    with_values(images=279),
    with_values(classes="10"),
    with_values(classes=3),
    with_values(model=None),
    with_values(model_fingerprint=7),
    with_values(stream_hash=[]),
    with_values(provenance=None),
    with_values(versions=None),
    with_values(versions={"torch": 2}),
    with_values(warnings="short"),
    with_values(warnings=[1]),
    with_values(warnings=None),
    with_values(more=1),
    with_values(seconds=1.0),
    with_values(format=2),
]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("result.json", damage) for damage in GARBLED),
        ("records.npz", truncate),
        ("records.npz", flip_a_bit),
        ("records.npz", Path.unlink),
    ],
)
def test_a_damaged_cell_is_reported_and_not_counted(
    out: Path, make_spec: Make, name: str, damage: Callable[[Path], None]
) -> None:
    damage(cell_directory(out, make_spec("bn")) / name)
    with pytest.warns(UserWarning, match="damaged.*does not count"):
        results = load_results(out)
    assert [result.spec.method for result in results] == ["source"]


def test_a_cell_in_the_place_of_another_is_not_counted(out: Path, make_spec: Make) -> None:
    cell_directory(out, make_spec("bn")).rename(out / "cells" / make_spec("tent").id)
    with pytest.warns(UserWarning, match="do not belong together"):
        assert len(load_results(out)) == 1


def test_an_unfinished_cell_is_not_counted(out: Path, make_spec: Make) -> None:
    (cell_directory(out, make_spec("bn")) / "result.json").unlink()
    assert [result.spec.method for result in load_results(out)] == ["source"]


def test_a_result_of_before_there_were_data_fingerprints_counts(out: Path, make_spec: Make) -> None:
    path = cell_directory(out, make_spec("bn")) / "result.json"
    content = json.loads(path.read_text())
    assert len(content.pop("data_fingerprint")) == 16
    path.write_text(json.dumps(content))
    assert [result.data_fingerprint == "" for result in load_results(out) if result.spec.method == "bn"] == [True]


def test_the_code_is_one_of_the_versions(tmp_path: Path) -> None:
    package = tmp_path / "grotta"
    shutil.copytree(Path(grotta.__file__).parent, package, ignore=shutil.ignore_patterns("assets", "__pycache__"))
    assert versions()["code"] == code_digest(package)
    (package / "cli.py").write_text("# what prints does not decide")
    assert versions()["code"] == code_digest.__wrapped__(package)
    with (package / "methods" / "bn.py").open("a") as file:
        file.write("# but this does")
    assert versions()["code"] != code_digest.__wrapped__(package)


def test_an_empty_or_missing_directory_has_no_results(tmp_path: Path) -> None:
    assert load_results(tmp_path) == load_results(tmp_path / "nowhere") == []


def test_a_result_reads_back_what_was_run(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    spec = make_spec("grotta", label="ours", options={"capacity": 50})
    result = run_cell(CellTask(spec, tmp_path, data_root))
    [again] = load_results(tmp_path)
    assert again == result
    assert again.spec.label == "ours"
    assert again.images == 280
    assert again.classes == 10
    assert again.provenance == "published"
    assert again.seconds > 0
    assert again.peak_memory_mb > 10


@pytest.mark.parametrize("label", [None, 7, ["bn"]])
def test_a_label_that_is_none_is_not_shown(out: Path, make_spec: Make, label: object) -> None:
    path = cell_directory(out, make_spec("bn")) / "spec.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "label": label}))
    assert sorted(result.spec.label for result in load_results(out)) == ["bn", "source"]


@pytest.mark.parametrize("content", ["{", "[]", '{"seconds": "long"}', '{"seconds": 1e999}', "9" * 400])
def test_timing_that_is_lost_is_not_a_number(out: Path, make_spec: Make, content: str) -> None:
    (cell_directory(out, make_spec("bn")) / "timing.json").write_text(content)
    result = next(result for result in load_results(out) if result.spec.method == "bn")
    assert math.isnan(result.seconds)


def test_records_agree_with_the_predictions(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    result = run_cell(CellTask(make_spec("grotta"), tmp_path, data_root))
    records = result.records
    wrong = result.predictions != result.labels
    ends = np.cumsum(records["size"])
    assert records["errors"].tolist() == [int(part.sum()) for part in np.split(wrong, ends[:-1])]
    assert records["size"].tolist() == [64, 64, 12] * 2
    assert records["domain"].tolist() == [0] * 3 + [1] * 3
    assert records["period"].tolist() == [0, 1, 2, 3, 4, 5]  # of the first image: periods have 46 or 47 images
    assert records["bank_size"][-1] <= 280
    assert result.accumulated_error()[-1] == pytest.approx(result.error)


def test_what_a_method_has_not_is_nan(tmp_path: Path, data_root: Path, make_spec: Make) -> None:
    records = run_cell(CellTask(make_spec("source"), tmp_path, data_root)).records
    assert np.isnan(records["loss"]).all()
    assert np.isnan(records["bank_size"]).all()
    assert np.isfinite(records["entropy"]).all()
