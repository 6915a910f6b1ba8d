"""What is known of a stream."""

import pytest

from grotta.methods.step_info import StepInfo
from grotta.serve import ModelSettings
from grotta.serve.catalogue import load_model
from grotta.serve.streams.strand import Strand, Workers
from grotta.serve.streams.stream import Stream

TOLD = {"estimated_accuracy": 0.75, "source_accuracy": 0.5}


@pytest.mark.parametrize(("method", "agreement"), [("grotta+", 0.5), ("tent", None)])
def test_a_method_that_asks_the_source_tells_how_far_it_agrees(method, agreement):
    workers = Workers(1)
    stream = Stream(load_model(ModelSettings("m", "fashion_resnet8", method=method)), "camera", Strand(workers))
    stream.learned(StepInfo(step=3, batch_size=1, adapted=True, extra=TOLD), lag=0)
    workers.stop()
    assert stream.history.latest.get("agreement") == agreement
    assert stream.history.latest["source_accuracy"] == 0.5
    assert stream.step == 3
