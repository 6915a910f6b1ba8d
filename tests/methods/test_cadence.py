import pytest
from hypothesis import given
from hypothesis import strategies as st

from grotta.methods import create, load
from grotta.methods.cadence import pieces


@given(st.integers(0, 1000), st.integers(1, 300), st.integers(1, 100))
def test_pieces_are_the_batch_cut_after_every_nth_sample(seen, size, every):
    expected, piece = [], []
    for i in range(size):
        piece.append(i)
        if (seen + i + 1) % every == 0:
            expected.append((piece, True))
            piece = []
    if piece:
        expected.append((piece, False))
    assert [(list(range(size))[part], due) for part, due in pieces(seen, size, every)] == expected


@pytest.mark.parametrize("method", ["note", "rotta"])
def test_the_count_of_samples_survives_saving(method, by_hand, tmp_path):
    net = by_hand.net()
    adapter = create(method, net)
    adapter(by_hand.images(40))
    adapter.save(tmp_path / "adapter")
    loaded = load(tmp_path / "adapter", net)
    for size, adapted in ((23, False), (1, True)):
        x = by_hand.images(size, seed=size)
        assert loaded(x).equal(adapter(x))
        assert loaded.last.adapted is adapter.last.adapted is adapted
