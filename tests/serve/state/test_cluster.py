"""Several servers over one state folder."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.serve.cluster import takeover
from benchmarks.serve.harness import pictures, serving_here

from grotta.serve.state.membership import Membership
from grotta.serve.state.store import OwnedElsewhere, StreamStore


def test_a_stream_has_one_owner_and_a_dead_owner_has_none(tmp_path):
    one, two = (Membership(tmp_path, lease=0.6) for _ in range(2))
    one.join()
    two.join()
    stores = [StreamStore(tmp_path, member.id, member.is_alive) for member in (one, two)]
    assert stores[0].claim("m", "camera") == 1
    assert stores[0].claim("m", "camera") == 1
    with pytest.raises(OwnedElsewhere, match=one.id):
        stores[1].claim("m", "camera")
    one._stop.set()  # as if it had been killed: its file stays, its count stands still
    assert two.is_alive(one.id)
    deadline = time.monotonic() + 5
    while two.is_alive(one.id):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not one.holds()  # it knew before the other did
    assert stores[1].claim("m", "camera") == 2
    assert not stores[0].owns("m", "camera", 1)
    assert stores[1].owns("m", "camera", 2)
    two.leave()


def test_a_server_that_left_owns_nothing(tmp_path):
    one, two = (Membership(tmp_path, lease=60) for _ in range(2))
    one.join()
    two.join()
    StreamStore(tmp_path, one.id, one.is_alive).claim("m", "camera")
    one.leave()
    assert StreamStore(tmp_path, two.id, two.is_alive).claim("m", "camera") == 2
    two.leave()


def test_what_a_former_owner_writes_late_is_not_read(tmp_path):
    import grotta

    adapter = grotta.create("tent", grotta.checks.small_model())
    store = StreamStore(tmp_path)
    store.save("m", "camera", 5, adapter)
    store.save("m", "camera", 3, adapter)  # of an epoch that is over
    assert store.checkpoint("m", "camera").name == "5.safetensors"


def test_a_stream_moves_to_the_server_that_is_asked(tmp_path):
    with serving_here(tmp_path / "state", shared=True) as one, serving_here(tmp_path / "state", shared=True) as two:
        for seed in range(3):
            one.infer(pictures(1, seed), "camera", wait=True)
        two.infer(pictures(1, 3), "camera", wait=True)
        assert two.inspect("camera")["step"] == 4
        assert one.client.get("/v2/models/m/stream", params={"name": "camera"}).status_code == 404
        one.infer(pictures(1, 4), "camera", wait=True)
        assert one.inspect("camera")["step"] == 5


def test_streams_that_wait_for_a_dead_server_share_one_look_at_it(tmp_path):
    """And are served when its lease has run out, from what it saved."""
    settings = {"shared": True, "lease_seconds": 2.0}
    with serving_here(tmp_path / "state", **settings) as one, serving_here(tmp_path / "state", **settings) as two:
        names = [f"camera {i}" for i in range(12)]
        for name in names:
            one.infer(pictures(1), name, wait=True, sequence_start=True)
        membership = one.service.ownership.membership
        membership._stop.set()  # as if it had been killed: its count stands still, and nobody answers
        two.service.ownership.membership.address = lambda server: "http://127.0.0.1:1"
        looks = []
        ownership = two.service.ownership
        is_gone = ownership.is_gone
        ownership.is_gone = lambda server: looks.append(server) or is_gone(server)
        built, build = [], two.service.threads.build

        def noted(job):
            built.append(is_gone(membership.id))
            return build(job)

        two.service.threads.build = noted
        began = time.monotonic()
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda name: two.post(pictures(1, 1), name, wait=True), names))
        assert [answer.status_code for answer in answers] == [200] * 12
        assert len(looks) <= 6 * (1 + time.monotonic() - began)  # five a second, not five a second for each
        assert all(two.inspect(name)["epoch"] > 1 for name in names)
        assert built == [False] * 12  # their adapters were made while the lease ran out


@pytest.mark.slow
def test_a_killed_servers_streams_go_on_with_the_other(tmp_path):
    if shutil.which("nginx") is None and not shutil.which("/usr/sbin/nginx"):
        pytest.skip("needs nginx")
    report = takeover(tmp_path, streams=20, before=8, after=15, period=2)
    assert report["taken_over"] > 0
    assert report["not_answered_after"] == []
    assert report["all_served_again_after_seconds"] <= 10
    assert report["not_from_last_checkpoint"] == []
    assert report["two_owners"] == []
