"""Cells on recorded streams: every picture once and in order, resumed bit by bit, with and without labels."""

import json
import math

import numpy as np
import pytest
from PIL import Image

import grotta.data
from grotta import methods, models
from grotta.bench import CellSpec, CellTask, load_results, run_cell, run_grid
from grotta.bench.events import Progressed
from grotta.bench.store.results import cell_directory
from grotta.models.state_file import write_state
from grotta.report.sections.figures import unlabelled_figure

CAMERAS = ("gate", "yard")


class StoppedError(Exception):
    pass


@pytest.fixture
def camera_root(tmp_path, monkeypatch):
    """Two cameras with 50 and 30 pictures of two classes, a list of them as CSV, and a network; gives their folder."""
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    rows = ["path,label,time,domain,stream"]
    for camera, count in zip(CAMERAS, (50, 30)):
        for number in range(count):
            label = "bright" if rng.random() < 0.3 + 0.4 * (number > count // 2) else "dark"
            path = tmp_path / "cams" / camera / label / f"2020-01-0{1 + (camera == 'yard')}_10_{number:02d}_00.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 120, (20, 20, 3)) + 100 * (label == "bright")
            Image.fromarray(pixels.astype(np.uint8)).save(path)
            moment = f"2020-01-0{1 + (camera == 'yard')}T10:{number:02d}:00"
            rows.append(f"{path.relative_to(tmp_path / 'cams')},{label},{moment},sun,{camera}")
    (tmp_path / "cams" / "list.csv").write_text("\n".join(rows) + "\n")
    write_state(
        tmp_path / "net.safetensors", models.create_model("fashion_resnet8", num_classes=2, seed=3).state_dict()
    )
    return tmp_path


def make(root, method="tent", dataset="folder:{}/cams", **options):
    fields = {"domains": CAMERAS, "batch_size": 8, "image_size": 16, "gamma": 0.1, "stream": "recorded"}
    model = f"fashion_resnet8@{root / 'net.safetensors'}"
    return CellSpec(method=method, dataset=dataset.format(root), model=model, **{**fields, **options})


def plain_loop(root, method, cameras, size=8):
    data = grotta.data.load(f"folder:{root}/cams", recorded=True, image_size=16)
    adapter = methods.create(method, models.create_model("fashion_resnet8", root / "net.safetensors"))
    predictions = []
    for camera in cameras:
        for start in range(0, len(data.labels(camera)), size):
            stop = min(start + size, len(data.labels(camera)))
            predictions += adapter(data.images(camera, range(start, stop))).argmax(1).tolist()
    return predictions


def test_every_picture_comes_once_in_order_and_its_time_is_kept(camera_root):
    result = run_cell(CellTask(make(camera_root), camera_root / "out"))
    assert result.predictions.tolist() == plain_loop(camera_root, "tent", CAMERAS)
    data = grotta.data.load(f"folder:{camera_root}/cams", recorded=True)
    assert result.labels.tolist() == [label for camera in CAMERAS for label in data.labels(camera).tolist()]
    times = result.records["time"].astype("datetime64[s]")
    assert times[[0, 50]].astype(str).tolist() == ["2020-01-01T10:00:00", "2020-01-02T10:00:00"]
    assert (np.diff(times) > 0).all()
    sizes = [8] * 6 + [2] + [8] * 3 + [6]
    assert result.records["size"].tolist() == sizes
    assert result.records["domain"].tolist() == [0] * 7 + [1] * 4


def test_a_csv_gives_the_same_bits_as_the_folder_it_lists(camera_root):
    folder = run_cell(CellTask(make(camera_root), camera_root / "out"))
    listed = run_cell(CellTask(make(camera_root, dataset="csv:{}/cams/list.csv"), camera_root / "out"))
    assert listed.predictions.tolist() == folder.predictions.tolist()
    assert listed.domain_errors == folder.domain_errors
    assert listed.records["time"].tolist() == folder.records["time"].tolist()


@pytest.mark.parametrize("stopped_after", [3, 7, 8, 10])
@pytest.mark.parametrize("per_stream", [False, True])
def test_a_cell_that_is_stopped_and_resumed_has_the_same_bytes(camera_root, per_stream, stopped_after):
    spec = make(camera_root, "rotta", per_stream=per_stream, options={"capacity": 8})
    run_cell(CellTask(spec, camera_root / "whole"))
    seen = []

    def stop(event):
        seen.extend([event] if isinstance(event, Progressed) else [])
        if len(seen) == stopped_after:
            raise StoppedError

    with pytest.raises(StoppedError):
        run_cell(CellTask(spec, camera_root / "parts", checkpoint_seconds=0), stop)
    rest = []
    run_cell(CellTask(spec, camera_root / "parts", checkpoint_seconds=0), rest.append)
    assert sum(isinstance(event, Progressed) for event in rest) < 11  # it did not start over
    for name in ("result.json", "records.npz"):
        whole, parts = (cell_directory(camera_root / out, spec) / name for out in ("whole", "parts"))
        assert parts.read_bytes() == whole.read_bytes()
    assert not list(cell_directory(camera_root / "parts", spec).glob("checkpoint*"))


def test_per_stream_gives_every_camera_an_adapter_of_its_own(camera_root):
    shared = run_cell(CellTask(make(camera_root, "tent", options={"lr": 0.05}), camera_root / "out"))
    own = run_cell(CellTask(make(camera_root, "tent", options={"lr": 0.05}, per_stream=True), camera_root / "out"))
    alone = run_cell(CellTask(make(camera_root, "tent", options={"lr": 0.05}, domains=("yard",)), camera_root / "out"))
    assert own.predictions[50:].tolist() == alone.predictions.tolist()
    assert own.records["loss"][7:].tolist() == alone.records["loss"].tolist()
    assert shared.records["loss"][7:].tolist() != alone.records["loss"].tolist()
    assert own.spec.label == "tent per stream lr=0.05"


def test_a_memory_of_its_own_holds_no_earlier_camera(camera_root):
    shared = run_cell(CellTask(make(camera_root, "grotta"), camera_root / "out"))
    own = run_cell(CellTask(make(camera_root, "grotta", per_stream=True), camera_root / "out"))
    assert "the memory still holds earlier domains" in shared.warnings[0]
    assert own.warnings == ()


def test_without_labels_agreement_entropy_and_class_mix_are_measured(camera_root):
    flat = camera_root / "flat"
    flat.mkdir()
    for path in sorted((camera_root / "cams").rglob("*.png")):
        (flat / path.name).write_bytes(path.read_bytes())
    spec = make(camera_root, "tent", dataset=f"folder:{flat}", domains=("flat",), options={"lr": 0.05})
    result = run_cell(CellTask(spec, camera_root / "out"))
    assert math.isnan(result.error)
    assert math.isnan(result.domain_errors["flat"])
    source = run_cell(
        CellTask(make(camera_root, "source", dataset=f"folder:{flat}", domains=("flat",)), camera_root / "out")
    )
    assert source.measures["agreement"] == 1.0
    agreement = (result.predictions == source.predictions).mean()
    assert result.measures["agreement"] == pytest.approx(agreement, abs=1e-6)
    assert agreement < 1
    shares = [result.measures[f"class {name}"] for name in ("0", "1")]
    assert shares == [(result.predictions == label).mean() for label in (0, 1)]
    assert 0 < result.measures["entropy"] < math.log(2)
    assert 0.5 < result.measures["confidence"] < 1
    plus = make(camera_root, "grotta+", dataset=f"folder:{flat}", domains=("flat",))
    assert 0 < run_cell(CellTask(plus, camera_root / "out")).measures["estimated_accuracy"] <= 1
    figure = unlabelled_figure([source, result])
    assert [panel.title for panel in figure.panels] == ["Agreement with the source network", "Entropy"]
    assert [series.label for series in figure.panels[0].series] == ["Source", "TENT lr=0.05"]
    assert set(figure.panels[0].series[0].y) == {100.0}
    assert figure.panels[0].x_scale == "time"
    again = [found for found in load_results(camera_root / "out") if found.spec == spec]
    assert again[0].measures == result.measures
    assert math.isnan(again[0].error)
    assert json.loads((result.directory / "result.json").read_text())["error"] is None


def test_an_edited_label_or_picture_makes_a_finished_cell_run_again(camera_root):
    spec = make(camera_root, "source", dataset="csv:{}/cams/list.csv")
    [first] = run_grid([spec], camera_root / "out", executor="inline")
    [same] = run_grid([spec], camera_root / "out", executor="inline")
    assert same == first
    listed = camera_root / "cams" / "list.csv"
    text = listed.read_text().splitlines()
    other = {"dark": "bright", "bright": "dark"}
    path, label, *more = text[1].split(",")
    listed.write_text("\n".join([text[0], ",".join([path, other[label], *more]), *text[2:]]))
    [relabelled] = run_grid([spec], camera_root / "out", executor="inline")
    assert relabelled.stream_hash != first.stream_hash
    path = next((camera_root / "cams" / "gate").rglob("*.png"))
    Image.fromarray(np.zeros((20, 20, 3), np.uint8)).save(path)
    [edited] = run_grid([spec], camera_root / "out", executor="inline")
    assert edited.data_fingerprint != relabelled.data_fingerprint


def test_numbers_as_labels_may_be_fewer_than_the_classes_of_the_network(camera_root):
    folder = camera_root / "cams"
    rows = [f"{path.relative_to(folder)},0" for path in folder.rglob("*.png")]
    (folder / "few.csv").write_text("\n".join(["path,label", *rows]))
    spec = make(camera_root, "bn", dataset="csv:{}/cams/few.csv", domains=("recorded",))
    result = run_cell(CellTask(spec, camera_root / "out"))
    assert result.classes == 2
    assert result.error == 100 * (result.predictions != 0).mean()
