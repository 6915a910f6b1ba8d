"""``grotta demo``, and the cameras it plays."""

import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from benchmarks.serve.harness import free_port

from grotta.data import load_clean
from grotta.serve.demo.cameras import CAMERAS, Camera


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


@pytest.mark.slow
def test_one_command_shows_moving_streams_within_a_minute():
    port, began = free_port(), time.monotonic()
    words = [sys.executable, "-m", "grotta", "demo", "--no-open", "--port", str(port), "--seconds", "40"]
    process = subprocess.Popen(words)
    try:
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)
        scored: list[int] = []
        while len(scored) < 2 or scored[-1] <= scored[0]:
            assert time.monotonic() - began < 60
            try:
                streams = client.get("/live").json()["streams"]
            except httpx.HTTPError:
                streams = []
            if {stream["name"] for stream in streams} == {camera.name for camera in CAMERAS}:
                scored.append(min(stream["scored"] for stream in streams))
            time.sleep(0.5)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
