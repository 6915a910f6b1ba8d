"""Recorded streams: every picture once, in order, and the label mix of what is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grotta.streams import Stream, recorded


@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=4), period=st.integers(1, 120), size=st.integers(1, 70)
)
def test_every_picture_comes_once_in_order_and_no_batch_spans_two_cameras(lengths, period, size):
    rng = np.random.default_rng(sum(lengths))
    labels = [rng.integers(-1, 3, length) for length in lengths]
    stream = recorded(labels, [f"camera{number}" for number in range(len(lengths))], 3, period=period)
    seen = [(camera, index) for camera, indices in stream.batches(size) for index in indices.tolist()]
    assert seen == [(camera, index) for camera, length in enumerate(lengths) for index in range(length)]


def test_pictures_with_a_camera_each_are_the_same_as_arrays_by_camera():
    flat = recorded([0, 1, 1, 0, 2], ["a", "b", "a", "b", "b"], 3)
    nested = recorded([[0, 1], [1, 0, 2]], ["a", "b"], 3)
    assert flat.hash == nested.hash
    assert recorded(np.array([0, 1, 1, 0, 2]), ["a", "b", "a", "b", "b"], 3).hash == flat.hash


def test_the_label_mix_counts_known_labels_alone():
    stream = recorded([[0, 0, 1, -1, -1, -1]], ["a"], 2, period=3)
    assert stream.label_distributions.tolist() == [[2 / 3, 1 / 3], [0.0, 0.0]]


def test_labels_and_names_of_cameras_are_part_of_the_hash():
    hashes = {recorded(*made, 2).hash for made in [([[0, 1]], ["a"]), ([[0, 1]], ["b"]), ([[1, 0]], ["a"])]}
    assert len(hashes) == 3


def test_it_is_saved_and_loaded(tmp_path):
    stream = recorded([[0, -1, 1], [1]], ["a", "b"], 2)
    stream.save(tmp_path / "s.safetensors")
    assert Stream.load(tmp_path / "s.safetensors").hash == stream.hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 2]], ["a"], 2), r"order must hold labels in \[0, 2\), or -1; those of 'a' are 0 to 2"),
        (([[0, -2]], ["a"], 2), "those of 'a' are -2 to 0"),
        (([[0], [1]], ["a", "a"], 2), "domains must be 2 different names"),
        (([[0], [1]], ["a"], 2), "domains must be 2 different names"),
        (([0, 1], ["a"], 2), "domains must name the domain of each of the 2 pictures, got 1"),
        (([[0.5]], ["a"], 2), "order must hold integers"),
        (([[]], ["a"], 2), "order must hold integers"),
        (([], [], 2), "at least 1"),
        (([[0]], ["a"], 0), "num_classes must be at least 1"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        recorded(*arguments)
