"""Servers that are stopped or killed: no stream is lost."""

import numpy as np
import pytest
import torch
from benchmarks.serve.crashes import crash_rounds
from benchmarks.serve.harness import LIGHT, pictures, serving

import grotta

OPTIONS = {"bank_batch": 4, "capacity": 40}


def test_a_stopped_server_has_learned_and_saved_everything_and_a_killed_one_its_checkpoints(tmp_path):
    state = tmp_path / "state"
    with serving(state, *LIGHT) as server:
        for seed in range(5):
            server.infer(pictures(2, seed), "camera")  # answered, not waited for
    adapter = grotta.create("grotta", grotta.models.create_model("fashion_resnet8", weights="bundled"), **OPTIONS)
    for seed in range(5):
        adapter(torch.from_numpy(pictures(2, seed)))
    with serving(state, *LIGHT, "--checkpoint-steps", "2") as server:
        known = server.inspect("camera")
        assert (known["state"], known["step"]) == ("disk", 5)
        for seed in range(5, 8):
            expected = adapter(torch.from_numpy(pictures(2, seed))).numpy()
            assert np.array_equal(server.infer(pictures(2, seed), "camera", wait=True), expected)
        first = server.infer(pictures(4), "other", wait=True)
        server.infer(pictures(4), "other", wait=True)
        assert server.client.post("/v2/models/m/stream/reset", params={"name": "other"}).status_code == 200
        server.kill()
    with serving(state, *LIGHT) as server:  # the checkpoint of step 7 is the last one, and the reset is not undone
        assert np.array_equal(server.infer(pictures(4), "other", wait=True), first)
        server.infer(pictures(2, 7), "camera", wait=True)
        assert server.inspect("camera")["step"] == 8
        expected = adapter(torch.from_numpy(pictures(2, 8))).numpy()
        assert np.array_equal(server.infer(pictures(2, 8), "camera", wait=True), expected)


@pytest.mark.slow
def test_twenty_kills_under_load_lose_no_checkpoint(tmp_path):
    report = crash_rounds(tmp_path / "state", rounds=20, streams=10, seconds=2.0)
    assert (report["lost"], report["leftovers"]) == ([], []), report
