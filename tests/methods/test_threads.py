"""One adapter, many threads: no error, and results of some serial order."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import grotta
from grotta.checks import batches, same_state, small_model
from grotta.methods.turns import Turns

THREADS, CALLS = 8, 200  # each; the quick tests share 40 calls


def many_threads(work, count=THREADS):
    """Run ``work(number)`` in ``count`` threads that start together; the first error is raised."""
    together = threading.Barrier(count)

    def start(number):
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(start, number) for number in range(count)]]


@pytest.mark.parametrize("method", grotta.list_methods())
def test_calls_from_many_threads_give_the_results_of_some_serial_order(method):
    """Every call with the same batch: in whatever order they come, the results are those of a run in one thread."""
    options = {"cotta": {"views": 1}, "grotta": {"bank_batch": 4, "capacity": 10}}.get(method, {})
    adapter, alone = (grotta.create(method, small_model(), seed=1, **options) for _ in range(2))
    x = next(batches((4,)))

    def call(_):
        results = []
        for _ in range(40 // THREADS):
            results.append(adapter(x).numpy().tobytes())
            assert (adapter.predict(x).sum(1) - 1).abs().max() < 1e-5
        return results

    results = [result for each in many_threads(call) for result in each]
    assert sorted(results) == sorted(alone(x).numpy().tobytes() for _ in range(40))
    assert same_state(adapter.state_dict(), alone.state_dict())


@pytest.mark.slow
@pytest.mark.parametrize("method", grotta.list_methods())
def test_eight_threads_make_two_hundred_calls_each(method):
    """Every thread has a batch of its own; the calls are repeated alone, in the order in which they were learned."""
    options = {"cotta": {"views": 1}}.get(method, {})
    adapter, alone = (grotta.create(method, small_model(), seed=1, **options) for _ in range(2))
    stream, order, learn = list(batches((4,) * THREADS)), [], adapter.learn

    def noting(batch, prediction, probs):
        order.append(next(i for i, x in enumerate(stream) if torch.equal(x, batch.images)))
        return learn(batch, prediction, probs)

    adapter.learn = noting
    results = many_threads(lambda number: [adapter(stream[number]) for _ in range(CALLS)])
    assert sorted(order) == sorted(list(range(THREADS)) * CALLS)
    for number in order:
        assert torch.equal(alone(stream[number]), results[number].pop(0))
    assert same_state(adapter.state_dict(), alone.state_dict())


@pytest.mark.parametrize("method", ["cotta", "grotta", "tent"])
def test_predictions_beside_each_other_and_beside_steps_are_those_of_a_state_between_steps(method):
    adapter = grotta.create(method, small_model(), seed=1, **({"views": 2} if method == "cotta" else {}))
    stream, seen = list(batches((8,) * 6)), next(batches((5,), seed=9))
    allowed = [adapter.predict(seen)]
    for x in stream:
        adapter(x)
        allowed.append(adapter.predict(seen))
    adapter.reset()
    done = threading.Event()

    def work(number):
        if number == 0:
            try:
                for x in stream:
                    adapter(x)
            finally:
                done.set()
            return []
        found = [adapter.predict(seen)]
        while not done.is_set():
            found.append(adapter.predict(seen))
        return found

    for found in many_threads(work, 4)[1:]:
        assert all(any(torch.equal(probs, one) for one in allowed) for probs in found)


def test_shared_turns_overlap_and_exclusive_ones_do_not():
    turns, both_inside = Turns(), threading.Barrier(2, timeout=10)

    def share(_):
        with turns.shared():
            both_inside.wait()  # passes only if two threads are inside at once

    many_threads(share, 2)
    inside = []

    def alone(_):
        for _ in range(200):
            with turns.exclusive():
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    many_threads(alone, 4)


def test_an_exclusive_turn_is_not_held_up_by_a_flow_of_shared_ones():
    turns, stop = Turns(), threading.Event()

    def flow(number):
        if number < 3:
            while not stop.is_set():
                with turns.shared():
                    pass
        else:
            with turns.exclusive():
                stop.set()

    many_threads(flow, 4)


def test_a_change_from_inside_a_shared_turn_is_refused_instead_of_waiting_for_itself():
    turns = Turns()
    with turns.shared(), turns.shared(), pytest.raises(RuntimeError, match="from inside"), turns.exclusive():
        pass
    with turns.exclusive(), turns.exclusive():
        pass
