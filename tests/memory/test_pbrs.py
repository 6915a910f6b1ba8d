"""NOTE's memory against its rules written over plain lists."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.memory import PBRS


class Lists:
    """The rules, one sample at a time, over a list of values for each class; two uniform numbers a sample."""

    def __init__(self, capacity, num_classes):
        self.capacity = capacity
        self.classes = [[] for _ in range(num_classes)]
        self.seen = [0] * num_classes

    def offer(self, value, label, first, second):
        self.seen[label] += 1
        if sum(map(len, self.classes)) == self.capacity and not self.make_room(label, first, second):
            return
        self.classes[label].append(value)

    def make_room(self, label, first, second):
        most = max(map(len, self.classes))
        largest = [c for c, items in enumerate(self.classes) if len(items) == most]
        if label not in largest:
            label = largest[int(first * len(largest))]
        elif first >= len(self.classes[label]) / self.seen[label]:
            return False
        self.classes[label].pop(int(second * len(self.classes[label])))
        return True


def images_of(values: range) -> torch.Tensor:
    return torch.tensor(list(values), dtype=torch.float32).view(-1, 1, 1, 1)


@settings(max_examples=200, deadline=None)
@given(
    capacity=st.integers(1, 12),
    num_classes=st.integers(1, 8),
    batches=st.lists(st.tuples(st.lists(st.integers(0, 99), min_size=1, max_size=30), st.booleans()), max_size=6),
    seed=st.integers(0, 1000),
)
def test_contents_equal_the_rules_for_any_sequence(capacity, num_classes, batches, seed):
    memory, reference = PBRS(capacity, num_classes), Lists(capacity, num_classes)
    ours, theirs = (torch.Generator().manual_seed(seed) for _ in range(2))
    offered = 0
    for labels, save_and_load in batches:
        classes = [label % num_classes for label in labels]
        values = range(offered, offered + len(labels))
        offered += len(labels)
        memory.add(images_of(values), torch.tensor(classes), ours)
        uniforms = torch.rand(len(labels), 2, generator=theirs, dtype=torch.float64)
        for value, label, pair in zip(values, classes, uniforms.tolist(), strict=True):
            reference.offer(value, label, *pair)
        if save_and_load:
            state = memory.state_dict()
            memory = PBRS(capacity, num_classes)
            memory.load_state_dict(state)
        assert memory.contents().flatten().tolist() == [value for items in reference.classes for value in items]
        assert memory.counts().tolist() == [len(items) for items in reference.classes]
        assert memory.seen().tolist() == reference.seen
        assert len(memory) == sum(map(len, reference.classes))


def test_inside_one_class_every_sample_ever_seen_is_kept_equally_often():
    generator = torch.Generator().manual_seed(0)
    kept: Counter[int] = Counter()
    for _ in range(1500):
        memory = PBRS(4, 1)
        memory.add(images_of(range(12)), torch.zeros(12, dtype=torch.int64), generator)
        kept.update(memory.contents().flatten().int().tolist())
    assert all(abs(kept[value] - 500) < 5 * (1500 * 2 / 9) ** 0.5 for value in range(12))


def test_a_skewed_stream_ends_in_a_balanced_memory():
    memory = PBRS(12, 3)
    labels = torch.tensor([0] * 50 + [1] * 8 + [2] * 4)
    memory.add(images_of(range(62)), labels, torch.Generator().manual_seed(1))
    assert memory.counts().tolist() == [4, 4, 4]


def test_eight_bit_images_stay_eight_bit():
    memory = PBRS(4, 2)
    images = torch.randint(0, 256, (3, 3, 4, 4), dtype=torch.uint8)
    memory.add(images, torch.tensor([0, 0, 1]), torch.Generator())
    assert torch.equal(memory.contents(), images)


def test_bad_batches_are_refused_and_change_nothing():
    memory, generator = PBRS(4, 2), torch.Generator().manual_seed(0)
    memory.add(images_of(range(2)), torch.tensor([0, 1]), generator)
    before, drawn = memory.state_dict(), generator.get_state()
    for images, labels, words in (
        (torch.rand(2, 3, 1, 1), torch.tensor([0, 1]), "images must keep the shape"),
        (images_of(range(2)), torch.tensor([0, 5]), r"labels must be in 0\.\.1"),
        (images_of(range(2)), torch.tensor([0]), "labels must have shape"),
    ):
        with pytest.raises(ValueError, match=words):
            memory.add(images, labels, generator)
    after = memory.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(drawn, generator.get_state())


def test_foreign_states_are_refused():
    memory = PBRS(4, 2)
    memory.add(images_of(range(2)), torch.tensor([0, 1]), torch.Generator())
    state = memory.state_dict()
    for change in ({"capacity": torch.tensor(5)}, {"num_classes": torch.tensor(3)}, {"seen": torch.zeros(3)}):
        with pytest.raises(ValueError, match=next(iter(change))):
            memory.load_state_dict({**state, **change})
    assert len(memory) == 2
