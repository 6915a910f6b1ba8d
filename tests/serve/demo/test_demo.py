"""``grotta demo``, and the cameras it plays."""

import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from benchmarks.serve.harness import free_port
from PIL import Image
from safetensors.torch import save_file

import grotta
from grotta.data import load_clean
from grotta.serve.demo import parking
from grotta.serve.demo.cameras import CAMERAS, Camera
from grotta.serve.demo.scenes import make_show
from grotta.serve.settings import gather


def test_weather_rolls_in_and_out_and_the_label_mix_changes():
    images, labels = load_clean("fashion")
    pixels, known = images.permute(0, 2, 3, 1).contiguous().numpy()[:500], labels.numpy()[:500]
    camera = Camera("test", ("brightness",), hold=1, gamma=0.1, period=6)
    batches = [batch for batch, _ in zip(camera.batches(pixels, known, 16), range(12))]
    light = [float(frames.mean()) for frames, _ in batches]
    assert light[0] < light[3] < light[6]  # severity 0, 3, 5
    assert light[6] > light[11]
    assert all(frames.shape == (16, 3, 32, 32) and frames.dtype == np.uint8 for frames, _ in batches)
    mixes = [np.bincount(np.concatenate([y for _, y in part]), minlength=10) for part in (batches[:6], batches[6:])]
    assert np.abs(mixes[0] - mixes[1]).sum() > 48  # of 192 at most
    again = [batch for batch, _ in zip(camera.batches(pixels, known, 16), range(2))]
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(again, batches))


def test_without_their_pictures_there_are_no_parking_cameras(monkeypatch, tmp_path):
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path))
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    show = make_show()
    assert [scene.camera for scene in show.scenes] == [camera.name for camera in CAMERAS]
    assert list(show.models) == ["clothes"]


def test_the_parking_cameras_join_where_their_pictures_and_network_are(monkeypatch, tmp_path):
    monkeypatch.setenv("GROTTA_DATA", str(tmp_path))
    monkeypatch.setenv("GROTTA_CACHE", str(tmp_path / "cache"))
    network = tmp_path / parking.NETWORK
    network.parent.mkdir(parents=True)
    save_file(grotta.models.create_model("resnet20", num_classes=2).state_dict(), network)
    for camera in parking.CAMERAS:
        for i in range(40):
            label = parking.LABELS[i % 2]
            folder = tmp_path / "pklot" / f"{camera}-sunny" / label
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (36, 36), (6 * i, 0, 0)).save(folder / f"2012-12-12_13_{i:02}_00_000.png")
    show = make_show()
    scenes = [scene for scene in show.scenes if scene.model == "parking"]
    assert [scene.camera for scene in scenes] == list(parking.CAMERAS)
    (first, labels), (second, _), (again, _) = (next(scenes[0].batches) for _ in range(3))
    assert first.shape == (16, 3, 32, 32)
    assert labels.tolist() == [0, 1] * 8
    assert first[:, 0].mean((1, 2)).tolist() == pytest.approx([6 * i for i in range(16)], abs=3)  # in order of time
    assert not np.array_equal(first, second)
    assert np.array_equal(first, again)
    show.write_settings(tmp_path / "serve.toml")
    clothes, cars = gather({"method": "source"}, {}, tmp_path / "serve.toml").models
    assert (clothes.path, cars.path, cars.labels) == ("fashion_resnet8", str(network), parking.LABELS)


@pytest.mark.slow
def test_one_command_shows_moving_streams_within_a_minute():
    port, began = free_port(), time.monotonic()
    words = [sys.executable, "-m", "grotta", "demo", "--no-open", "--port", str(port), "--seconds", "40"]
    process = subprocess.Popen(words)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)
    try:
        scored: list[int] = []
        while len(scored) < 2 or scored[-1] <= scored[0]:
            assert time.monotonic() - began < 60
            try:
                streams = client.get("/live").json()["streams"]
            except httpx.HTTPError:
                streams = []
            if {stream["name"] for stream in streams} >= {camera.name for camera in CAMERAS}:
                scored.append(min(stream["scored"] for stream in streams))
            time.sleep(0.5)
        assert process.wait(60) == 0
    finally:
        client.close()
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_terminated_demo_takes_its_server_with_it():
    port = free_port()
    words = [sys.executable, "-m", "grotta", "demo", "--no-open", "--port", str(port), "--seconds", "300"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("Live page")
        process.terminate()
        assert process.wait(60) in (0, 130)  # 130: interrupted before the cameras were running
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/v2/health/live", trust_env=False)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
