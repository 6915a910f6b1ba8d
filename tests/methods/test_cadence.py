from hypothesis import given
from hypothesis import strategies as st

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
