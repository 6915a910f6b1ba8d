import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from grotta import streams
from grotta.streams import Stream

LABELS = [np.arange(230) % 4, np.arange(90) % 3]


def make(kind, labels=LABELS, num_classes=4, gamma=0.1, **options):
    if kind == "iid":
        return streams.iid(labels, num_classes, **options)
    return getattr(streams, kind)(labels, num_classes, gamma, **options)


KINDS = ("ptta", "rotta", "exhaustive", "iid")
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_same_seed_gives_the_same_stream_and_another_seed_another(kind):
    first, again, other = make(kind), make(kind), make(kind, seed=1)
    assert first.hash == again.hash != other.hash
    assert all(np.array_equal(a, b) for a, b in zip(first.indices, again.indices))
    assert not all(np.array_equal(a, b) for a, b in zip(first.indices, other.indices))


@every_kind
def test_the_global_generator_is_neither_read_nor_moved(kind):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(kind)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@every_kind
def test_a_domain_depends_on_no_other_domain(kind):
    alone = make(kind, [LABELS[0][:50], LABELS[1]])
    beside = make(kind, [LABELS[0], LABELS[1], LABELS[0]])
    assert np.array_equal(alone.indices[1], beside.indices[1])


@every_kind
def test_indices_are_int64_into_the_domain_and_cannot_be_changed(kind):
    stream = make(kind)
    for domain, indices in zip(LABELS, stream.indices):
        assert indices.dtype == np.int64
        assert 0 <= indices.min() <= indices.max() < len(domain)
        with pytest.raises(ValueError, match="read-only"):
            indices[0] = 0
    assert len(stream) == 320
    assert stream.boundaries.tolist() == [0, 230, 320]


@every_kind
def test_the_spec_is_plain_json_and_names_what_the_stream_was_made_from(kind):
    stream = make(kind, period=50, seed=7)
    assert json.loads(json.dumps(stream.spec)) == stream.spec
    assert stream.spec["kind"] == kind
    assert stream.spec["gamma"] == (None if kind == "iid" else 0.1)
    assert (stream.spec["period"], stream.spec["seed"], stream.spec["num_classes"]) == (50, 7, 4)
    assert stream.spec["domain_lengths"] == [230, 90]


@every_kind
def test_the_hash_knows_the_labels(kind):
    changed = LABELS[0].copy()
    changed[[0, 1]] = changed[[1, 0]]
    assert make(kind).spec["labels_sha256"] != make(kind, [changed, LABELS[1]]).spec["labels_sha256"]


def test_the_hash_does_not_depend_on_the_byte_order_or_dtype_of_the_labels():
    hashes = {make("ptta", [d.astype(dtype) for d in LABELS]).hash for dtype in (">i8", "<i4", np.uint8)}
    assert hashes == {make("ptta").hash}
    assert make("ptta", [torch.from_numpy(d) for d in LABELS]).hash in hashes


def test_hashes_are_those_of_the_first_release():
    assert {kind: make(kind).hash[:16] for kind in KINDS} == {
        "ptta": "22684af20edd6e18",
        "rotta": "da8085c1138a7fc0",
        "exhaustive": "17817ca189f286a5",
        "iid": "666c997d2f577614",
    }


@settings(deadline=None)
@given(st.integers(1, 400))
def test_batches_keep_the_order_and_never_mix_domains(batch_size):
    stream = make("ptta")
    batches = list(stream.batches(batch_size))
    for domain, indices in enumerate(stream.indices):
        mine = [batch for number, batch in batches if number == domain]
        assert np.array_equal(np.concatenate(mine), indices)
        assert all(len(batch) == batch_size for batch in mine[:-1])
        assert 1 <= len(mine[-1]) <= batch_size
    assert [number for number, _ in batches] == sorted(number for number, _ in batches)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_at_least_one_sample(batch_size):
    with pytest.raises(ValueError, match=f"batch_size must be at least 1, got {batch_size}"):
        make("iid").batches(batch_size)


@every_kind
def test_a_saved_stream_is_replayed_exactly(kind, tmp_path):
    stream, path = make(kind), tmp_path / "stream.safetensors"
    stream.save(path)
    loaded = Stream.load(path)
    assert loaded.hash == stream.hash
    assert loaded.spec == stream.spec
    assert np.array_equal(loaded.boundaries, stream.boundaries)
    assert np.array_equal(loaded.label_distributions, stream.label_distributions)
    assert all(np.array_equal(a, b) for a, b in zip(loaded.indices, stream.indices))
    assert pickle.loads(pickle.dumps(loaded)).hash == stream.hash


def test_saving_the_same_stream_gives_the_same_bytes_and_leaves_nothing_else(tmp_path):
    make("ptta").save(tmp_path / "a")
    make("ptta").save(tmp_path / "b")
    make("iid").save(tmp_path / "b")
    make("ptta").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "stream"
    make("iid").save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        make("ptta").save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["stream"]


def test_a_change_of_any_byte_is_noticed(tmp_path):
    path = tmp_path / "stream"
    make("ptta", [np.arange(6) % 2], 2).save(path)
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        try:
            stream = Stream.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            pytest.fail(f"byte {position} of {len(content)} ({content[position : position + 1]!r}): {stream.spec}")


def test_what_is_not_a_stream_of_this_version_is_refused(tmp_path):
    path = tmp_path / "stream"
    with pytest.raises(FileNotFoundError):
        Stream.load(path)
    with pytest.raises(ValueError, match="is a directory"):
        Stream.load(tmp_path)
    path.write_text("<html>404</html>")
    with pytest.raises(ValueError, match="not a stream file, or is damaged"):
        Stream.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="not a stream file, or is damaged"):
        Stream.load(path)
    make("iid").save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="not a stream file, or is damaged"):
        Stream.load(path)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match="not of a stream"):
        Stream.load(path)
    for header, message in [
        ("{", "its header cannot be read"),
        ('{"version": 1}', "its header cannot be read"),
        ('{"version": 2, "spec": {}, "checksum": ""}', "has stream format 2; this version of grotta reads 1"),
        ('{"version": 1, "spec": {}, "checksum": ""}', "does not have the checksum"),
    ]:
        save_file({"indices": np.ones(3)}, path, {"grotta.stream": header})
        with pytest.raises(ValueError, match=message):
            Stream.load(path)


@every_kind
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"labels": []}, ValueError, "labels must hold at least one domain"),
        ({"labels": [0, 1, 2]}, ValueError, r"labels\[0\] must be a 1-D array.*got shape \(\)"),
        ({"labels": [[0, 1], []]}, ValueError, r"labels\[1\] is empty"),
        ({"labels": [[0.5, 1.0]]}, TypeError, r"labels\[0\] must hold integers, got float64"),
        ({"labels": [[0, 4]]}, ValueError, r"labels\[0\] must be in \[0, 4\).*got 0 to 4"),
        ({"labels": [[0], [-1]]}, ValueError, r"labels\[1\] must be in \[0, 4\).*got -1 to -1"),
        ({"num_classes": 0}, ValueError, "num_classes must be at least 1, got 0"),
        ({"num_classes": "4"}, TypeError, "num_classes must be a whole number, got '4'"),
        ({"period": 0}, ValueError, "period must be at least 1, got 0"),
        ({"period": 1.5}, TypeError, "period must be a whole number, got 1.5"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": None}, TypeError, "seed must be a whole number, got None"),
    ],
)
def test_bad_input_is_named(kind, change, error, message):
    with pytest.raises(error, match=message):
        make(kind, **change)


@pytest.mark.parametrize("kind", ["ptta", "rotta", "exhaustive"])
@pytest.mark.parametrize("gamma", [0, -0.1, float("nan"), float("inf")])
def test_a_bad_gamma_is_named(kind, gamma):
    with pytest.raises(ValueError, match=f"gamma must be (positive|finite), got {gamma}"):
        make(kind, gamma=gamma)
    with pytest.raises(TypeError, match="gamma must be a number, got '1e-2'"):
        make(kind, gamma="1e-2")
