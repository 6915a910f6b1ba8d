"""Order within a stream, side by side between streams."""

import threading

import numpy as np
import pytest

from grotta.serve.history import BUCKETS, SECONDS, History
from grotta.serve.strand import Strand, Workers


@pytest.fixture
def workers():
    made = Workers(3)
    yield made
    made.stop()


def test_jobs_of_a_strand_never_overlap_and_keep_their_order(workers):
    strands = [Strand(workers) for _ in range(5)]
    seen = [[] for _ in strands]
    busy = [threading.Lock() for _ in strands]

    def job(which, number):
        assert busy[which].acquire(blocking=False)
        seen[which].append(number)
        busy[which].release()

    futures = [s.submit(lambda w=w, n=n: job(w, n)) for n in range(200) for w, s in enumerate(strands)]
    for future in futures:
        future.result(10)
    assert all(order == list(range(200)) for order in seen)


def test_discarded_jobs_are_not_done_and_the_others_are(workers):
    strand, gate, done = Strand(workers), threading.Event(), []
    first = strand.submit(gate.wait)
    dropped = [strand.submit(lambda: done.append("dropped"), discardable=True) for _ in range(3)]
    kept = strand.submit(lambda: done.append("kept"))
    assert len(strand) == 3
    assert strand.discard() == 3
    assert len(strand) == 0
    gate.set()
    first.result(10)
    kept.result(10)
    assert done == ["kept"]
    assert all(future.cancelled() for future in dropped)
    assert strand.submit(lambda: 7).result(10) == 7


def test_a_strand_goes_on_after_an_error(workers):
    strand = Strand(workers)
    with pytest.raises(ZeroDivisionError):
        strand.submit(lambda: 1 / 0).result(10)
    assert strand.submit(lambda: "fine").result(10) == "fine"


def test_stopped_workers_have_done_everything():
    workers = Workers(1)
    strand, done = Strand(workers), []
    for number in range(50):
        strand.submit(lambda n=number: done.append(n))
    workers.stop()
    assert done == list(range(50))
    with pytest.raises(RuntimeError, match="stopped"):
        strand.submit(lambda: None)


def test_history_forgets_what_is_older_than_its_window():
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


def test_history_shows_only_what_a_method_tells():
    history = History()
    history.learned(0.0, {"estimated_accuracy": 0.5}, lag=2)
    series = history.series(SECONDS)
    assert series["estimated_accuracy"][-2:] == [0.5, None]
    assert series["lag"][-2:] == [2, None]
    assert set(series["agreement"]) == {None}


def test_history_puts_classes_beyond_its_slots_together():
    history = History()
    history.answered(0.0, np.eye(30, dtype=np.float32))
    rows = history.classes(0.0, [str(i) for i in range(30)])
    assert len(rows) == 12
    assert rows[0]["label"] == "other"
    assert sum(sum(row["counts"]) for row in rows) == 30
