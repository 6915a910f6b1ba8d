"""What the live page draws, in a fixed amount of memory."""

import numpy as np
import pytest

from grotta.serve.streams.history import BUCKETS, SECONDS, History


def test_what_is_older_than_the_window_is_forgotten():
    history = History()
    probs = np.array([[0.5, 0.25, 0.25]], np.float32)
    history.answered(0.0, probs)
    history.answered(SECONDS * (BUCKETS - 1), probs)
    assert history.series(SECONDS * (BUCKETS - 1))["images"][0] == 1
    series = history.series(SECONDS * BUCKETS)
    assert sum(series["images"]) == 1
    assert series["entropy"][-2] == pytest.approx(1.5 * np.log(2), abs=1e-3)
    assert series["entropy"][-1] is None
    assert history.classes(SECONDS * 10 * BUCKETS, ["a", "b", "c"])[0]["counts"] == [0] * BUCKETS


def test_only_what_a_method_tells_is_shown():
    history = History()
    history.learned(0.0, {"estimated_accuracy": 0.5}, lag=2)
    series = history.series(SECONDS)
    assert series["estimated_accuracy"][-2:] == [0.5, None]
    assert series["lag"][-2:] == [2, None]
    assert set(series["agreement"]) == {None}


def test_classes_beyond_the_slots_are_put_together():
    history = History()
    history.answered(0.0, np.eye(30, dtype=np.float32))
    rows = history.classes(0.0, [str(i) for i in range(30)])
    assert len(rows) == 12
    assert rows[0]["label"] == "other"
    assert sum(sum(row["counts"]) for row in rows) == 30
