"""At most so many images of a domain: which ones."""

import numpy as np
import pytest

from grotta.bench.inputs.opened import make_stream, taken
from grotta.bench.spec import CellSpec

SORTED = np.repeat(np.arange(4), 25)
MIXED = np.tile(np.arange(4), 25)


def spec(**changes):
    return CellSpec(method="source", dataset="pacs", domains=("photo",), gamma=0.1, period=10, **changes)


@pytest.mark.parametrize("stream", ["ptta", "iid", "rotta", "exhaustive"])
def test_folders_sorted_by_class_show_every_class(stream):
    drawn = make_stream(spec(images=20, stream=stream), (SORTED,), 4)
    (shown,) = drawn.indices
    assert len(shown) == 20
    assert set(shown) <= set(range(0, 100, 5))
    assert set(SORTED[taken(SORTED, 20)]) == {0, 1, 2, 3}


def test_where_the_first_ones_have_all_classes_they_are_taken():
    few, whole = (make_stream(spec(images=n), (labels,), 4) for n, labels in ((20, MIXED), (0, MIXED[:20])))
    assert few.hash == whole.hash


def test_a_recording_begins_at_its_beginning():
    (shown,) = make_stream(spec(images=20, stream="recorded"), (SORTED,), 4).indices
    assert shown.tolist() == list(range(20))


def test_as_many_classes_elsewhere_are_no_reason():
    assert taken(np.arange(100), 40).tolist() == list(range(40))
