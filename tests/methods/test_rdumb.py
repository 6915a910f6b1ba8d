import pytest
import torch

from grotta.methods import create


def test_between_two_resets_it_is_eata_without_fisher(by_hand):
    net = by_hand.net()
    options = {"margin": 0.9, "redundancy": 1.0, "lr": 0.01}
    rdumb = create("rdumb", net, reset_every=3, **options)
    for _ in range(2):
        eata = create("eata", net, beta=0.0, **options)
        for step in range(3):
            x = by_hand.images(8, seed=step)
            assert rdumb(x).equal(eata(x))
            assert rdumb.last.loss == eata.last.loss


def test_after_the_last_batch_of_a_period_everything_is_as_at_the_beginning(by_hand):
    adapter = create("rdumb", by_hand.net(), reset_every=2, margin=0.9, redundancy=1.0)
    fresh = adapter.state_dict()
    adapter(by_hand.images(8))
    moved = adapter.state_dict()
    assert not all(moved[key].equal(fresh[key]) for key in fresh if key.startswith("network"))
    adapter(by_hand.images(8, seed=1))
    again = adapter.state_dict()
    assert again.keys() == fresh.keys()  # the optimizer has no state again
    assert all(torch.equal(again[key], fresh[key]) for key in fresh if key != "step")


def test_it_has_no_fisher_information_and_says_nothing_of_it(by_hand, caplog):
    create("rdumb", by_hand.net())(by_hand.images(4))
    assert not caplog.records


def test_a_period_of_nothing_is_refused(by_hand):
    with pytest.raises(ValueError, match="reset_every must be"):
        create("rdumb", by_hand.net(), reset_every=0)
