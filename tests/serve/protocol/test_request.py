"""The wire format, checked against numpy and the real client's encoder; every malformed request is refused."""

import gzip
import json

import numpy as np
import pytest
from benchmarks.serve.harness import SHAPE, binary_request, pictures
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.serve.errors import Refused
from grotta.serve.limits import Limits
from grotta.serve.protocol.request import OutputWish, inflate, parse_infer
from grotta.serve.protocol.response import encode_infer

LIMITS = Limits(body_bytes=1 << 20, images=8)


def as_json(images, **entries):
    names = {"uint8": "UINT8", "float32": "FP32"}
    shape, kind = list(images.shape), names[images.dtype.name]
    tensor = {"name": "images", "shape": shape, "datatype": kind, "data": images.ravel().tolist()}
    return json.dumps({"inputs": [tensor], **entries}).encode()


def refusal(body, length=None, shape=SHAPE, limits=LIMITS):
    with pytest.raises(Refused) as caught:
        parse_infer(body, length, shape, limits)
    assert 400 <= caught.value.status < 500
    return str(caught.value)


def test_json_and_raw_tensors_are_the_same_images():
    for images in (pictures(2), (pictures(2) / 255).astype(np.float32)):
        from_json = parse_infer(as_json(images), None, SHAPE, LIMITS)
        from_raw = parse_infer(*binary_request(images), SHAPE, LIMITS)
        assert np.array_equal(from_json.images, images)
        assert np.array_equal(from_raw.images, images)
        assert from_json.images.dtype == from_raw.images.dtype == images.dtype


def test_nested_lists_are_accepted_as_the_protocol_says():
    images = pictures(1)
    nested = {"name": "images", "shape": [1, *SHAPE], "datatype": "UINT8", "data": images.tolist()}
    parsed = parse_infer(json.dumps({"inputs": [nested]}).encode(), None, SHAPE, LIMITS)
    assert np.array_equal(parsed.images, images)


def test_half_and_double_precision_become_single():
    for kind in (np.float16, np.float64):
        images = (pictures(1) / 255).astype(kind)
        assert np.array_equal(parse_infer(*binary_request(images), SHAPE, LIMITS).images, images.astype(np.float32))


@pytest.mark.parametrize(
    ("given", "name"), [(7, "7"), ("gate/7", "gate/7"), (0, None), ("", None), (2**64 - 1, str(2**64 - 1))]
)
def test_sequences_are_numbers_or_strings(given, name):
    parsed = parse_infer(*binary_request(pictures(1), given, sequence_start=True, sequence_end=False), SHAPE, LIMITS)
    assert (parsed.stream, parsed.start, parsed.end) == (name, True, False)


def test_real_clients_requests_are_understood():
    http = pytest.importorskip("tritonclient.http")
    images = pictures(3)
    tensor = http.InferInput("images", list(images.shape), "UINT8")
    tensor.set_data_from_numpy(images)
    output = http.InferRequestedOutput("probabilities", binary_data=True, class_count=2)
    body, length = http.InferenceServerClient.generate_request_body(
        [tensor], outputs=[output], sequence_id="north", sequence_start=True
    )
    parsed = parse_infer(body, str(length), SHAPE, LIMITS)
    assert np.array_equal(parsed.images, images)
    assert (parsed.stream, parsed.start, parsed.outputs) == ("north", True, (OutputWish("probabilities", True, 2),))


def test_the_real_client_reads_our_answers():
    http = pytest.importorskip("tritonclient.http")
    probs = np.random.default_rng(0).dirichlet(np.ones(4), 3).astype(np.float32)
    wishes = [OutputWish(binary=True), OutputWish("classes", binary=False)]
    body, headers = encode_infer({"model_name": "m"}, probs, wishes, "abcd")
    length = int(headers["Inference-Header-Content-Length"])
    result = http.InferenceServerClient.parse_response_body(body, header_length=length)
    assert np.array_equal(result.as_numpy("probabilities"), probs)
    assert np.array_equal(result.as_numpy("classes"), probs.argmax(1))


def test_the_best_classes_are_strings_of_score_index_and_label():
    body, _ = encode_infer({}, np.array([[0.25, 0.5, 0.25]], np.float32), [OutputWish(top=2)], ["a", "b", "c"])
    assert json.loads(body)["outputs"][0]["data"] == ["0.500000:1:b", "0.250000:0:a"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "pixels"}, "named 'images'"),
        ({"datatype": "INT8"}, "datatype must be one of"),
        ({"datatype": None}, "datatype must be one of"),
        ({"shape": [1, 3, 32]}, "shape"),
        ({"shape": [1, 32, 32, 3]}, "shape"),
        ({"shape": [0, 3, 32, 32]}, "at least 1"),
        ({"shape": [True, 3, 32, 32]}, "whole numbers"),
        ({"shape": [2, 3, 32, 32]}, "takes 6144 values, data has 3072"),
        ({"shape": [10**9, 3, 32, 32]}, "at most"),
        ({"shape": [2**62, 3, 32, 32]}, "at most"),
        ({"data": "abc"}, "list of numbers"),
        ({"data": ["a"] * 3072}, "numbers only"),
        ({"data": [[1], [2, 3]]}, "flat list"),
        ({"data": [-1] * 3072}, "from 0 to 255"),
        ({"data": [0.5] * 3072}, "whole numbers"),
        ({"data": [10**30] * 3072}, "numbers"),
        ({"data": [None] * 3072}, "numbers only"),
        ({"data": [True] * 3072}, "numbers only"),
        ({"parameters": {"binary_data_size": 3072}, "data": None}, "Inference-Header-Content-Length"),
    ],
)
def test_a_malformed_tensor_is_refused_with_the_reason(change, reason):
    tensor = {"name": "images", "shape": [1, *SHAPE], "datatype": "UINT8", "data": [0] * 3072, **change}
    assert reason in refusal(json.dumps({"inputs": [tensor]}).encode())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"[1, 2]", "JSON object"),
        (b'{"inputs": []}', "list of one tensor"),
        (b'{"inputs": [1]}', "list of one tensor"),
        (b'{"inputs": {}}', "list of one tensor"),
        (b'{"input": []}', "unknown entry"),
        (b'{"inputs": [{"name": "images"}], "id": 3}', "id must be a string"),
        (b'{"inputs": [], "parameters": []}', "parameters must be an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"inputs": NaN}', "not JSON"),
    ],
)
def test_a_malformed_document_is_refused_with_the_reason(body, reason):
    assert reason in refusal(body)


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -np.inf, 1e30, -0.5, 255.0])
def test_pixels_that_are_no_image_are_refused(pixel):
    images = np.zeros((1, *SHAPE), np.float64)
    images[0, 0, 0, 0] = pixel
    assert "in [0, 1]" in refusal(*binary_request(images))


@pytest.mark.parametrize(
    "parameters",
    [
        {"sequence_id": -1},
        {"sequence_id": 2**64},
        {"sequence_id": 1.5},
        {"sequence_id": True},
        {"sequence_id": "x" * 129},
        {"sequence_id": "a\nb"},
        {"sequence_id": "a\0b"},
        {"sequence_id": 1, "sequence_start": 1},
        {"sequence_id": 1, "sequence_end": "yes"},
        {"wait": "true"},
    ],
)
def test_malformed_parameters_are_refused(parameters):
    refusal(as_json(pictures(1), parameters=parameters))


@pytest.mark.parametrize("length", ["-1", "0", "1", "abc", "999999", "1e3", "٣٣"])
def test_a_header_length_that_lies_is_refused(length):
    refusal(binary_request(pictures(1))[0], length)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_truncated_and_padded_raw_tensors_are_refused(data):
    body, length = binary_request(pictures(1))
    if data.draw(st.booleans()):
        broken = body[: data.draw(st.integers(0, len(body) - 1))]
    else:
        broken = body + data.draw(st.binary(min_size=1, max_size=50))
    refusal(broken, length)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.one_of(st.none(), st.text(max_size=6)))
def test_no_bytes_at_all_get_past_the_parser_but_as_a_refusal(body, length):
    refusal(body, length)


def test_compressed_bodies_are_bounded_by_what_they_become():
    assert inflate(gzip.compress(b"a" * 1000), "gzip", LIMITS) == b"a" * 1000
    bomb = gzip.compress(b"\0" * (1 << 24))
    with pytest.raises(Refused, match="more than") as caught:
        inflate(bomb, "gzip", LIMITS)
    assert caught.value.status == 413
    for broken in (b"abc", bomb[:20], gzip.compress(b"a" * 1000)[:-4]):
        with pytest.raises(Refused):
            inflate(broken, "gzip", LIMITS)
    with pytest.raises(Refused, match="gzip or deflate"):
        inflate(b"", "br", LIMITS)
