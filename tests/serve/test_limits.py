"""Tokens, strict sequences, queues and limits, on a server in this process."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from benchmarks.serve.harness import LocalServer, binary_request, pictures, serving_here

from grotta._files import BusyError
from grotta.serve import ModelSettings, Settings
from grotta.serve.state.ownership import Ownership

TOKEN = "correct horse battery"


def test_a_token_guards_everything_but_health_and_the_empty_page(tmp_path):
    with serving_here(tmp_path / "state", token=TOKEN, strict_sequences=True) as server:
        for path in ("/v2", "/v2/models/m", "/v2/models/m/streams", "/metrics", "/live", "/openapi.json"):
            assert server.client.get(path, headers={"Authorization": ""}).status_code == 401
            assert server.client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert server.client.get(path).status_code == 200
        for path in ("/", "/v2/health/live", "/v2/health/ready"):
            assert server.client.get(path, headers={"Authorization": ""}).status_code == 200
        check_strict(server)
        with pytest.raises(BusyError, match="another process is using"):
            Ownership(Settings(state=server.state)).take()
        with pytest.raises(BusyError):
            Ownership(Settings(state=server.state, shared=True)).take()


def check_strict(server: LocalServer) -> None:
    for stream in ("new", None):
        assert server.post(pictures(1), stream).status_code == 400
    assert "must specify the START flag" in server.post(pictures(1), "new").json()["error"]
    assert server.client.get("/v2/models/m/streams").json()["total"] == 0
    server.infer(pictures(1), "new", sequence_start=True)
    server.infer(pictures(1), "new", sequence_end=True)
    assert server.post(pictures(1), "new").status_code == 400


def test_a_full_queue_skips_learning_and_never_an_answer(tmp_path):
    models = (ModelSettings("m", "fashion_resnet8"),)
    with serving_here(tmp_path / "state", models=models, queue=2) as server:
        for seed in range(30):
            assert server.infer(pictures(8, seed), "fast").shape == (8, 10)
        found = server.inspect("fast")
        assert found["requests"] == 30
        assert found["skipped"] > 0
        assert (
            f'grotta_adaptation_skipped_total{{model="m"}} {found["skipped"]}.0' in server.client.get("/metrics").text
        )


def test_limits_are_kept(tmp_path):
    with serving_here(tmp_path / "state", max_streams=2, max_body_mb=1, max_images=8) as server:
        for name in ("a", "b"):
            server.infer(pictures(1), name)
        assert server.post(pictures(1), "c").status_code == 429
        assert server.post(pictures(9), "a").status_code == 400
        body, length = binary_request(pictures(400), "a")
        headers = {"Inference-Header-Content-Length": length}
        assert server.client.post("/v2/models/m/infer", content=body, headers=headers).status_code == 413
        parts = (body[i : i + 65536] for i in range(0, len(body), 65536))  # without Content-Length
        assert server.client.post("/v2/models/m/infer", content=parts, headers=headers).status_code == 413
        assert server.inspect("a")["requests"] == 1


def test_too_many_waiting_requests_are_told_to_come_back(tmp_path):
    import httpx

    with serving_here(tmp_path / "state", max_waiting=2) as server:
        server.infer(pictures(1), "a")
        body, length = binary_request(pictures(64), "a", wait=True)

        async def flood() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:
                headers = {"Inference-Header-Content-Length": length}
                sends = [client.post("/v2/models/m/infer", content=body, headers=headers) for _ in range(12)]
                return await asyncio.gather(*sends)

        answers = asyncio.run(flood())
        assert {answer.status_code for answer in answers} == {200, 503}
        assert all(int(a.headers["Retry-After"]) >= 1 for a in answers if a.status_code == 503)


def test_more_streams_than_fit_in_memory_may_be_asked_at_once(tmp_path):
    """Room is made among streams that nobody is using: none waits for one that waits for room itself."""
    names = [f"camera {i}" for i in range(6)]
    with serving_here(tmp_path / "state", max_live=2) as server, ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            assert all(pool.map(lambda name: server.infer(pictures(1), name, wait=True).shape == (1, 10), names))
        assert [server.inspect(name)["step"] for name in names] == [3] * 6
        assert server.client.get("/live").json()["live"] <= 2


def test_several_models_have_their_own_streams_and_methods(tmp_path):
    models = (ModelSettings("m", "fashion_resnet8"), ModelSettings("frozen", "fashion_resnet8", method="source"))
    with serving_here(tmp_path / "state", models=models) as server:
        body, length = binary_request(pictures(2), "same", wait=True)
        headers = {"Inference-Header-Content-Length": length}
        answers = [
            server.client.post(f"/v2/models/{name}/infer", content=body, headers=headers).json()["outputs"][0]["data"]
            for name in ("frozen", "m", "frozen", "m")
        ]
        assert answers[0] == answers[2]
        assert answers[1] != answers[3]
        score = {"correct": 3, "total": 4, "reference_correct": 1, "reference_total": 4}
        url = "/v2/models/m/stream/score?name=same"
        assert server.client.post(url, json=score).json() == {"scored": 4, "correct": 3}
        assert server.client.post(url, json={"correct": 5, "total": 4}).status_code == 400
        detail = server.client.get("/live/stream", params={"model": "m", "name": "same"}).json()
        assert detail["series"]["accuracy"][-1] in (0.75, None)
        assert sum(sum(row["counts"]) for row in detail["classes"]) == 4
        assert len(detail["frames"]) == 2
        overview = server.client.get("/live").json()
        assert {(row["model"], row["name"]) for row in overview["streams"]} == {("m", "same"), ("frozen", "same")}


def test_a_stream_whose_state_does_not_fit_is_refused_until_it_begins_anew(tmp_path):
    with serving_here(tmp_path / "state") as server:
        server.infer(pictures(2), "camera", wait=True, sequence_end=True)
        [file] = server.state.rglob("*.safetensors")
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert server.post(pictures(1), "camera").status_code == 409
        assert file.read_bytes() != whole  # nothing was written over it
        fresh = server.infer(pictures(2), "other", wait=True)
        assert np.array_equal(server.infer(pictures(2), "camera", wait=True, sequence_start=True), fresh)
