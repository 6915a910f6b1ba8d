"""A real server and real clients: the protocol, streams, and what the library would have answered."""

import io
import json
import time

import numpy as np
import pytest
import torch
from benchmarks.serve.harness import LIGHT, Server, binary_request, pictures
from PIL import Image

import grotta

http = pytest.importorskip("tritonclient.http")
FLAGS = (*LIGHT, "--max-live", "4", "--checkpoint-steps", "3")
OPTIONS = {"bank_batch": 4, "capacity": 40}


@pytest.fixture(scope="module")
def model():
    return grotta.models.create_model("fashion_resnet8", weights="bundled")


@pytest.fixture
def triton(server):
    client = http.InferenceServerClient(f"127.0.0.1:{server.port}")
    yield client
    client.close()


def tensor(images, binary=True):
    kind = "UINT8" if images.dtype == np.uint8 else "FP32"
    made = http.InferInput("images", list(images.shape), kind)
    made.set_data_from_numpy(images, binary_data=binary)
    return made


def until_learned(server: Server, stream: str, steps: int) -> None:
    deadline = time.monotonic() + 60
    while server.inspect(stream)["step"] < steps:
        assert time.monotonic() < deadline, server.inspect(stream)
        time.sleep(0.02)


def test_the_real_client_reads_health_and_metadata(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("m")
    assert triton.is_model_ready("m", "1")
    extensions = triton.get_server_metadata()["extensions"]
    assert {"sequence", "sequence(string_id)", "binary_tensor_data", "parameters"} <= set(extensions)
    metadata = triton.get_model_metadata("m")
    assert metadata["inputs"] == [{"name": "images", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]
    assert metadata["outputs"][0] == {"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]}
    with pytest.raises(http.InferenceServerException, match="no model 'other'"):
        triton.get_model_metadata("other")


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("sequence", [11, "north-gate"])
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_the_real_client_infers_with_any_tensor_and_any_sequence(triton, model, binary, sequence, kind):
    images = pictures(3) if kind == np.uint8 else (pictures(3) / 255).astype(np.float32)
    outputs = [http.InferRequestedOutput("probabilities", binary_data=binary), http.InferRequestedOutput("classes")]
    result = triton.infer(
        "m", [tensor(images, binary)], outputs=outputs, sequence_id=sequence, sequence_start=True, request_id="a"
    )
    expected = grotta.create("grotta", model, **OPTIONS).predict(torch.from_numpy(images)).numpy()
    assert np.allclose(result.as_numpy("probabilities"), expected, atol=1e-6)
    assert np.array_equal(result.as_numpy("classes"), expected.argmax(1))
    assert result.get_response()["id"] == "a"
    assert result.get_response()["parameters"]["sequence_id"] == str(sequence)


def test_compressed_requests_are_understood(triton):
    for algorithm in ("gzip", "deflate"):
        result = triton.infer("m", [tensor(pictures(2))], request_compression_algorithm=algorithm)
        assert result.as_numpy("probabilities").shape == (2, 10)


def test_waiting_requests_give_the_librarys_bits(server, model):
    adapter = grotta.create("grotta", model, **OPTIONS)
    for seed, size in enumerate((1, 5, 2, 8, 1, 1)):
        images = pictures(size, seed)
        served = server.infer(images, "strict", wait=True, sequence_start=seed == 0)
        assert np.array_equal(served, adapter(torch.from_numpy(images)).numpy()), f"step {seed}"


def test_answers_come_first_and_the_stream_ends_where_the_library_does(server, model, tmp_path):
    adapter = grotta.create("grotta", model, **OPTIONS)
    for seed in range(6):
        images = pictures(2, seed)
        server.infer(images, "first")
        adapter(torch.from_numpy(images))
    until_learned(server, "first", 6)
    (tmp_path / "state.safetensors").write_bytes(server.export("first"))
    served = grotta.load(tmp_path / "state.safetensors", model).state_dict()
    assert all(torch.equal(served[key], value) for key, value in adapter.state_dict().items())


def test_streams_that_went_to_disk_come_back_as_they_were(server, model):
    names = [f"many-{i}" for i in range(7)]  # more than the four that fit in memory
    adapters = {name: grotta.create("grotta", model, **OPTIONS) for name in names}
    for turn in range(3):
        for i, name in enumerate(names):
            images = pictures(2, 10 * turn + i)
            expected = adapters[name](torch.from_numpy(images)).numpy()
            assert np.array_equal(server.infer(images, name, wait=True), expected), f"{name}, turn {turn}"
    listed = server.client.get("/v2/models/m/streams").json()["streams"]
    assert sum(stream["state"] == "live" for stream in listed) <= 4
    assert {stream["name"] for stream in listed} >= set(names)


def test_a_start_begins_anew_and_an_end_frees_the_memory(server, model):
    first = server.infer(pictures(4), "cycle", wait=True)
    assert not np.array_equal(server.infer(pictures(4), "cycle", wait=True), first)
    assert np.array_equal(server.infer(pictures(4), "cycle", wait=True, sequence_start=True), first)
    server.infer(pictures(4), "cycle", wait=True, sequence_end=True)
    assert server.inspect("cycle")["state"] == "disk"
    assert server.inspect("cycle")["unsaved_steps"] == 0


def test_requests_without_a_sequence_share_the_default_stream(server):
    server.infer(pictures(1))
    assert server.inspect("default")["requests"] >= 1


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_pictures_are_taken_as_plain_bodies(server, form):
    buffer = io.BytesIO()
    Image.fromarray(pictures(1)[0].transpose(1, 2, 0)).resize((64, 48)).save(buffer, form)
    answer = server.client.post(
        "/v2/models/m/infer?stream=curl&wait=true",
        content=buffer.getvalue(),
        headers={"Content-Type": f"image/{form.lower()}"},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["outputs"][0]["shape"] == [1, 10]
    assert server.inspect("curl")["images"] >= 1
    named = server.client.post(
        "/v2/models/m/infer?stream=curl&top=2",
        content=buffer.getvalue(),
        headers={"Content-Type": f"image/{form.lower()}"},
    )
    first, second = (entry.split(":") for entry in named.json()["outputs"][0]["data"])
    assert float(first[0]) >= float(second[0])
    assert first[2] in server.client.get("/v2/models/m").json()["parameters"]["labels"]


def test_an_exported_stream_goes_on_elsewhere(server, model):
    for seed in range(3):
        server.infer(pictures(2, seed), "old", wait=True)
    state = server.export("old")
    answer = server.client.put("/v2/models/m/stream/import", params={"name": "new"}, content=state)
    assert answer.json() == {"imported": "new", "step": 3}
    images = pictures(3, 99)
    assert np.array_equal(server.infer(images, "old", wait=True), server.infer(images, "new", wait=True))


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other method", "other options"])
def test_an_import_that_does_not_fit_changes_nothing(server, model, damage, tmp_path):
    server.infer(pictures(2), "kept", wait=True)
    before, whole = server.digest("kept"), server.export("kept")
    if damage.startswith("other"):
        method, options = ("tent", {}) if damage == "other method" else ("grotta", {"capacity": 20})
        grotta.create(method, model, **options).save(tmp_path / "other.safetensors")
        content = (tmp_path / "other.safetensors").read_bytes()
    else:
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        content = {"cut": whole[: len(whole) // 2], "flipped": flipped, "empty": b""}[damage]
    answer = server.client.put("/v2/models/m/stream/import", params={"name": "kept"}, content=content)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]
    assert server.digest("kept") == before


def test_deleted_and_reset_streams_are_gone_from_disk_too(server):
    server.infer(pictures(2), "gone", wait=True, sequence_end=True)
    assert server.client.delete("/v2/models/m/stream", params={"name": "gone"}).status_code == 200
    assert server.client.get("/v2/models/m/stream", params={"name": "gone"}).status_code == 404
    for seed in range(3):
        server.infer(pictures(2, seed), "back", wait=True)
    assert server.client.post("/v2/models/m/stream/reset", params={"name": "back"}).status_code == 200
    assert server.inspect("back")["step"] == 0


def test_refused_requests_leave_the_stream_as_it_was(server):
    server.infer(pictures(2), "safe", wait=True)
    before = server.digest("safe")
    good, length = binary_request(pictures(1), "safe", sequence_start=True)
    images = np.full((1, 3, 32, 32), np.nan, np.float32)
    bad = [
        (good[:-1], length),
        (good + b"x", length),
        (good, "7"),
        (good, None),
        binary_request(images, "safe", sequence_start=True),
        binary_request(pictures(1)[:, :, :16], "safe", sequence_start=True),
        (b"", None),
    ]
    for body, size in bad:
        headers = {} if size is None else {"Inference-Header-Content-Length": size}
        answer = server.client.post("/v2/models/m/infer", content=body, headers=headers)
        assert 400 <= answer.status_code < 500
        assert set(answer.json()) == {"error"}
    mixed = server.client.post(
        "/v2/models/m/infer",
        content=good,
        headers={"Inference-Header-Content-Length": length, "X-Grotta-Stream": "other"},
    )
    assert mixed.status_code == 400
    assert server.digest("safe") == before


@pytest.mark.parametrize("name", ["../../../tmp/evil", "/etc/passwd", "a/b/../c", "..", "CON", "x" * 128, "höhle 42 ☃"])
def test_no_name_leads_out_of_the_state_folder(server, name):
    server.infer(pictures(1), name, wait=True, sequence_end=True)
    folders = [path for path in server.state.rglob("stream.json") if json.loads(path.read_text())["name"] == name]
    assert len(folders) == 1
    assert folders[0].parent.parent == server.state / "v1" / "m"
    assert server.inspect(name)["step"] == 1


def test_traces_are_continued_in_the_answer_and_the_log(server):
    trace = "0af7651916cd43dd8448eb211c80319c"
    answer = server.client.get("/v2", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    assert answer.headers["traceparent"].split("-")[1] == trace
    deadline = time.monotonic() + 60  # the line is written after the answer
    while not any(line.get("trace") == trace for line in server.events("request")):
        assert time.monotonic() < deadline, server.events("request")
        time.sleep(0.02)
    assert server.client.get("/v2", headers={"traceparent": "nonsense"}).headers["traceparent"].count("-") == 3


def test_metrics_have_bounded_labels_and_count_what_happened(server):
    for _ in range(2):  # the second answer waits until the first batch is learned
        server.infer(pictures(1), "north-gate", wait=True)
    assert server.client.post("/v2/models/m/infer", content=b"{").status_code == 400
    text = server.client.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert all(name.startswith("grotta_") for name in values)
    assert float(values['grotta_images_total{model="m"}']) > 0
    assert float(values['grotta_adapted_total{model="m"}']) > 0
    answered = 'grotta_requests_total{route="/v2/models/{model}/infer",status="200"}'
    assert values['grotta_answer_seconds_count{model="m"}'] == values[answered]
    assert not any("north-gate" in name or name.endswith("_created") for name in values)


def test_pages_of_other_sites_and_other_hosts_are_turned_away(server):
    assert server.client.get("/v2", headers={"Origin": "https://evil.example"}).status_code == 403
    assert server.client.get("/v2", headers={"Host": "evil.example"}).status_code == 421
    assert server.client.get("/v2", headers={"Origin": server.url}).status_code == 200


def test_errors_are_objects_with_a_reason_everywhere(server):
    for answer in (
        server.client.get("/nothing/here"),
        server.client.get("/v2/models/m/infer"),
        server.client.get("/v2/models/nope"),
        server.client.get("/v2/models/m/versions/2"),
        server.client.post("/v2/models/m/infer", content=b"x", headers={"Content-Type": "application/x-pickle"}),
        server.client.post("/v2/models/m/infer?wait=maybe", content=b"{}"),
        server.client.post("/v2/models/m/infer?top=-1", content=b"x", headers={"Content-Type": "image/png"}),
    ):
        assert 400 <= answer.status_code < 500
        assert set(answer.json()) == {"error"}


def test_the_openapi_document_describes_every_route(server):
    document = server.client.get("/openapi.json").json()
    assert {"/v2", "/v2/models/{model}/infer", "/v2/models/{model}/streams"} <= set(document["paths"])
