"""Answers go first."""

import threading
import time

import torch
from torch import nn

import grotta
from grotta.checks import batches, small_model
from grotta.serve.streams.gate import Gate
from grotta.serve.streams.pair import Pair


def network(gate: Gate, passed: list[str]) -> nn.Module:
    class Noting(nn.Module):
        def forward(self, x):
            passed.append("layer")
            return x

    made = nn.Sequential(Noting(), Noting())
    gate.watch(made)
    return made


def test_a_learner_stands_still_while_an_answer_is_under_way():
    gate, passed = Gate(), []
    made = network(gate, passed)

    def step():
        gate.begin_step()
        made(torch.zeros(1))

    with gate:
        learner = threading.Thread(target=step)
        learner.start()
        time.sleep(0.05)
        assert passed == []
    learner.join(10)
    assert passed == ["layer", "layer"]


def test_a_step_stands_still_for_a_bounded_time():
    gate, passed = Gate(), []
    made = network(gate, passed)
    with gate:  # never left while the step runs
        gate.begin_step()
        made(torch.zeros(1))
    assert passed == ["layer", "layer"]


def test_answers_never_wait_for_each_other():
    gate = Gate()
    with gate, gate:
        assert gate.busy
    assert not gate.busy


def test_a_reset_learner_is_still_watched_and_learns_the_same_bits():
    gate = Gate()
    pair, library = Pair(grotta.create("tent", small_model()), gate), grotta.create("tent", small_model())
    pair.reset()
    layers = [m for m in pair.learner.modules() if not list(m.children())]
    assert layers
    assert all(gate.stand_still in layer._forward_pre_hooks.values() for layer in layers)
    for x in batches((4, 8)):
        assert torch.equal(pair.learn(x), library(x))


def test_compiled_networks_are_left_whole():
    pair = Pair(grotta.create("tent", small_model(), compile=True))
    assert not any(Gate.stand_still in map(_function, m._forward_pre_hooks.values()) for m in pair.learner.modules())


def _function(hook):
    return getattr(hook, "__func__", hook)
