"""The tables of docs/results.md and docs/which-method.md are those of the records in docs/records."""

import json
import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import grotta
from grotta.bench.inputs.opened import load_dataset, make_stream, read_labels
from grotta.bench.spec import CellSpec

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import result_tables

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "records").glob("*.jsonl"))
PAGE = (ROOT / "docs" / "results.md").read_text()
WHICH = (ROOT / "docs" / "which-method.md").read_text()


OF_A_METHOD = ("method", "preset", "options", "seed")


def cells(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def printed(name: str, method: str, column: int) -> float:
    """The number of a method in the first table that is made from these records, without its interval."""
    section = PAGE.split(f"<!-- records {name} -->")[1].split("<!-- end of records -->")[0]
    row = next(line for line in section.splitlines() if line.startswith(f"| {method} |"))
    found = re.search(r"[\d.]+", row.split("|")[column + 3])
    assert found
    return float(found[0])


@pytest.mark.parametrize("page", [PAGE, WHICH], ids=["results", "which-method"])
def test_the_tables_are_what_the_records_give(page: str) -> None:
    assert result_tables.filled(page) == page


@pytest.mark.parametrize("page", [PAGE, WHICH], ids=["results", "which-method"])
def test_a_number_that_was_edited_is_noticed(page: str) -> None:
    start = page.index("<!-- records ")
    number = re.search(r"\d+\.\d(?= \|)", page[start:])
    assert number
    place = start + number.start()
    edited = page[:place] + "1" + page[place:]
    assert result_tables.filled(edited) == page != edited


@pytest.mark.parametrize(
    ("name", "title", "method", "preset", "gamma", "column"),
    [
        ("fashion-c-fashion_resnet8-4000", "Source", "source", "paper", 0.1, 0),
        ("fashion-c-fashion_resnet8-4000", "BN", "bn", "paper", 0.1, 0),
        ("fashion-c-fashion_resnet8-4000", "LAME", "lame", "paper", 0.1, 0),
        ("cifar10-c-resnet20-2000", "RoTTA", "rotta", "paper", 0.1, 0),
        ("cifar10-c-resnet20-2000", "GRoTTA+", "grotta+", "paper", 0.1, 0),
        ("cifar100-c-resnet56_proj-2000", "GRoTTA fast", "grotta", "fast", 0.0001, 1),
        ("imagenet-c-mobilenet_v2-all", "BN", "bn", "paper", 0.1, 0),
        ("pacs-mobilenet_v2-1000", "GRoTTA+", "grotta+", "paper", 0.1, 0),
    ],
)
def test_a_number_is_the_mean_of_its_runs(
    name: str, title: str, method: str, preset: str, gamma: float, column: int
) -> None:
    runs = []
    for cell in cells(ROOT / "docs" / "records" / f"{name}.jsonl"):
        if (cell["spec"]["method"], cell["spec"]["preset"], cell["spec"]["gamma"]) == (method, preset, gamma):
            errors = cell["domain_errors"].values()
            runs.append(sum(errors) / len(errors))
    assert printed(name, title, column) == pytest.approx(sum(runs) / len(runs), abs=0.0501)


def test_a_regret_is_the_distance_to_the_best_of_its_situation() -> None:
    """The mean and worst regret of two methods, from the records alone."""
    errors: dict[str, dict[str, float]] = defaultdict(dict)
    for cell in cells(ROOT / "docs" / "records" / "matrix.jsonl"):
        spec = {name: value for name, value in cell["spec"].items() if name not in OF_A_METHOD}
        counted = [error for name, error in cell["domain_errors"].items() if not garbage(name)]
        row = (cell["spec"]["method"] + " " + cell["spec"]["preset"]).removesuffix(" paper")
        errors[json.dumps(spec, sort_keys=True)][row] = sum(counted) / len(counted)
    assert len(errors) == 46
    for title, row in (("GRoTTA+", "grotta+"), ("LAME", "lame"), ("GRoTTA fast", "grotta fast")):
        behind = [found[row] - min(found.values()) for found in errors.values()]
        line = next(line for line in WHICH.splitlines() if line.startswith(f"| {title} |"))
        mean, worst = map(float, line.split("|")[2:4])
        assert (mean, worst) == pytest.approx((sum(behind) / len(behind), max(behind)), abs=0.00501)


def garbage(domain: str) -> bool:
    return domain.startswith(("noise", "blank")) or (":" in domain and "pucpr" not in domain and "+" not in domain)


def test_every_situation_is_of_one_kind() -> None:
    shown = [line.split("|") for line in WHICH.split("<!-- records matrix kinds -->")[1].splitlines()]
    counts = [int(parts[2]) for parts in shown if len(parts) > 4 and parts[2].strip().isdigit()]
    assert sum(counts) == 46


def test_the_example_report_is_there_and_needs_nothing_else() -> None:
    assert 'href="_static/example-report.html"' in PAGE
    page = (ROOT / "docs" / "_static" / "example-report.html").read_text()
    assert "223 cells" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.parametrize("values", [[10.0, 12.5], [23.1, 22.8, 23.9], [1.0, 2.0, 4.0, 8.0], [5.0, 5.5, 4.0, 4.5, 9.0]])
def test_an_interval_is_students(values: list[float]) -> None:
    mean = sum(values) / len(values)
    _, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=stats.sem(values))
    assert result_tables.interval(values) == f"{mean:.1f} ± {high - mean:.1f}"


def test_a_cell_that_is_run_again_replaces_its_record(tmp_path: Path) -> None:
    before, *others = result_tables.read_records(RECORDS[0])
    result_tables.add_records([before, *others], tmp_path)
    result_tables.add_records([replace(before, error=99.0)], tmp_path)
    after = result_tables.read_records(tmp_path / RECORDS[0].name)
    assert {r.spec.id for r in after} == {r.spec.id for r in (before, *others)}
    assert next(r.error for r in after if r.spec == before.spec) == 99.0


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_record_is_on_the_page_and_whole(path: Path) -> None:
    assert f"<!-- records {path.stem} -->" in PAGE
    assert path.stat().st_size < 600_000
    for cell in cells(path):
        assert CellSpec.from_dict(cell["spec"]).method in grotta.list_methods()
        assert list(cell["domain_errors"]) == list(cell["spec"]["domains"])
        assert min(map(len, (cell["stream_hash"], cell["model_fingerprint"], cell["data_fingerprint"]))) >= 16
        size = cell["spec"].get("images")
        if size:  # every domain is as long as asked for: its error is a whole number of images
            wrong = [error * size / 100 for error in cell["domain_errors"].values()]
            assert wrong == pytest.approx([round(number) for number in wrong], abs=1e-6)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_method_saw_the_same_streams_pictures_and_network(path: Path) -> None:
    seen: dict[tuple[Any, ...], set[tuple[str, ...]]] = defaultdict(set)
    for cell in cells(path):
        spec = {name: value for name, value in cell["spec"].items() if name not in OF_A_METHOD}
        key = (cell["model"], json.dumps(spec, sort_keys=True))
        seen[key].add((cell["stream_hash"], cell["data_fingerprint"], cell["model_fingerprint"]))
    assert {len(found) for found in seen.values()} == {1}


@pytest.mark.parametrize("path", [p for p in RECORDS if p.stem.startswith("fashion")], ids=lambda path: path.stem)
def test_streams_of_the_bundled_data_are_drawn_again_from_their_seeds(path: Path) -> None:
    for gamma, cell in {cell["spec"]["gamma"]: cell for cell in cells(path)}.items():
        spec = CellSpec.from_dict(cell["spec"])
        data = load_dataset(spec, None)
        assert make_stream(spec, read_labels(data), data.num_classes).hash == cell["stream_hash"], gamma
