"""How many different pictures a stream showed: counted for original pictures that came more than once, and kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grotta import streams
from grotta.bench.cell.loop import _distinct
from grotta.bench.inputs.opened import CellInputs
from grotta.bench.store.results import load_results

LABELS = (np.arange(40) % 4, np.arange(60) % 4)


def inputs(stream, provenance="original"):
    return CellInputs(SimpleNamespace(provenance=provenance), LABELS, stream, None, "")


def test_pictures_that_came_again_are_counted_once():
    stream = streams.ptta(LABELS, 4, 0.01)
    different = {(domain, int(index)) for domain, indices in enumerate(stream.indices) for index in indices}
    assert _distinct(inputs(stream)) == len(different) < len(stream)


def test_nothing_is_said_of_streams_that_show_each_once_nor_of_published_data():
    assert _distinct(inputs(streams.exhaustive(LABELS, 4, 0.01))) == 0
    assert _distinct(inputs(streams.ptta(LABELS, 4, 0.01), "regenerated")) == 0


@pytest.mark.parametrize("number", [0, 63])
def test_the_number_is_kept_with_the_result_and_unsaid_if_there_is_none(number, make_result, write_run):
    out = write_run([replace(make_result("bn", 0.1, {"fog": 1.0}), distinct_images=number)])
    [result] = load_results(out)
    assert result.distinct_images == number
    assert ("distinct_images" in (result.directory / "result.json").read_text()) == (number > 0)
