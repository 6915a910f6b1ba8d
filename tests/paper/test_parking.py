"""The parking cameras: trained once, run in recorded order, error and label mix by hour, and the page."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grotta.bench import load_results
from grotta.cli import main
from grotta.paper import parking
from grotta.paper.parking import by_hour
from grotta.report.figure import Figure
from grotta.report.table import Table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pklot(tmp_path_factory):
    """A few pictures of each camera and weather; gives the folder of their data root."""
    tmp_path, monkeypatch = tmp_path_factory.mktemp("parking"), pytest.MonkeyPatch()
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(parking, "FEWEST", 1)
    rng = np.random.default_rng(0)
    for camera in ("pucpr", "ufpr04", "ufpr05"):
        for weather in ("cloudy", "shaded", "sunny"):
            for number in range(12):
                label = "empty" if number % 3 else "occupied"
                hour = 8 + number // 2
                name = f"2012-12-{10 + len(weather)}_{hour:02d}_05_08_{number:03d}.jpg"
                path = tmp_path / "data" / "pklot" / f"{camera}-{weather}" / label / name
                path.parent.mkdir(parents=True, exist_ok=True)
                pixels = rng.integers(0, 120, (36, 36, 3)) + 120 * (label == "occupied")
                Image.fromarray(pixels.astype(np.uint8)).save(path)
    yield tmp_path
    monkeypatch.undo()


def reproduce(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *map(str, arguments)])
    return stop.value.code


@pytest.fixture(scope="module")
def run(pklot):
    """A finished run of the recipe, with three methods."""
    out = pklot / "runs"
    assert (
        reproduce("parking", "--methods", "source,bn,lame", "--out", out, "--executor", "inline", "--batch-size", 8)
        == 0
    )
    return out


def test_the_network_is_trained_once_and_the_cameras_are_run_in_recorded_order(run, pklot, capsys):
    weights = pklot / "cache" / "data" / "models" / "pklot-pucpr-sunny" / "resnet20.safetensors"
    trained = weights.stat().st_mtime_ns
    results = load_results(run)
    assert {result.spec.method for result in results} == {"source", "bn", "lame"}
    spec = results[0].spec
    assert (spec.stream, spec.domains) == ("recorded", ("pucpr:cloudy+shaded", "ufpr04", "ufpr05"))
    assert spec.model == "resnet20@models/pklot-pucpr-sunny/resnet20.safetensors"
    assert (results[0].images, len({result.stream_hash for result in results})) == (24 + 36 + 36, 1)
    again = reproduce("parking", "--methods", "source,bn", "--out", run, "--executor", "inline", "--batch-size", 8)
    assert (again, "training" in capsys.readouterr().err, weights.stat().st_mtime_ns) == (0, False, trained)


def test_error_and_label_mix_are_those_of_a_plain_count_by_hour(run):
    result = next(result for result in load_results(run) if result.spec.method == "bn")
    hours = result.records["time"].astype("datetime64[s]").astype("datetime64[h]").astype(int) % 24
    domain = np.repeat(result.records["domain"], result.records["size"])
    wrong = result.predictions != result.labels
    for hour, percent in by_hour(result, 1, wrong):
        assert percent == pytest.approx(100 * wrong[(domain == 1) & (hours == hour)].mean())
    assert [hour for hour, _ in by_hour(result, 1, wrong)] == [8, 9, 10, 11, 12, 13]
    occupied = dict(by_hour(result, 0, result.labels == 1))
    assert occupied == {8: 50, 9: 50, 10: 0, 11: 50, 12: 50, 13: 0}


def test_the_section_has_the_table_and_error_beside_label_mix_for_each_camera(run):
    from grotta.paper.directory import directory_sections

    section = directory_sections(run, load_results(run))[0]
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert table.columns[-1] == "all images"
    figure = next(block for block in section.blocks if isinstance(block, Figure))
    assert [panel.title.partition(": ")[2] for panel in figure.panels] == ["error", "label mix"] * 3


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("parking_page", ROOT / "scripts" / "parking_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_says_first_where_the_recommended_method_is_not_first(script, make_result):
    plus = make_result("grotta+", 0.1, {"gate": 10.0, "yard": 30.0})
    lame = make_result("lame", 0.1, {"gate": 20.0, "yard": 28.0})
    source = make_result("source", 0.1, {"gate": 50.0, "yard": 50.0})
    assert script.sentence([source, lame, plus]).startswith(
        "**GRoTTA+ is not first on `yard` (30.0 %, LAME 28.0 %).** The source network alone gets 50.0 % of"
    )
    worse = make_result("grotta+", 0.1, {"gate": 20.0, "yard": 60.0})
    assert script.recommended_first([source, lame, worse]).startswith(
        "**GRoTTA+ is not first on `yard` (60.0 %, LAME 28.0 %) nor over all pictures ("
    )
    assert script.recommended_first([source, plus]) == script.recommended_first([source, lame]) == ""


def test_the_page_is_made_from_the_run_alone(run, script):
    page, drawn = script.make_page(run)
    source = next(result for result in load_results(run) if result.spec.method == "source")
    assert f"The source network alone gets {source.error:.1f} % of 96 pictures wrong" in page
    assert "Not run here yet: PL, TENT, ODS, NOTE, RoTTA, GRoTTA, GRoTTA+." in page
    assert "CoTTA is left out" in page
    assert set(drawn) == {"drift", "parking-hours"}
    assert all(f"(parking/{name}.svg)" in page for name in drawn)
