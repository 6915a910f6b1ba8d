"""Order within a stream, side by side between streams."""

import threading

import pytest

from grotta.serve.streams.strand import Strand, Workers


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
