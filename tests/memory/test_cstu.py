"""RoTTA's memory against its rules written over a plain list of objects."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grotta.memory import CSTU


@dataclass
class Item:
    value: float
    uncertainty: float
    age: int = 0


class Lists:
    """The rules, one sample at a time, over a list of items for each class."""

    def __init__(self, capacity, num_classes, lambda_t, lambda_u):
        self.capacity, self.num_classes = capacity, num_classes
        self.lambda_t, self.lambda_u = lambda_t, lambda_u
        self.classes = [[] for _ in range(num_classes)]

    def score(self, item):
        timeliness = 1 / (1 + math.exp(-item.age / self.capacity))
        return self.lambda_t * timeliness + self.lambda_u * item.uncertainty / math.log(self.num_classes)

    def offer(self, value, label, uncertainty):
        new = Item(value, uncertainty)
        if self.make_room(new, label):
            self.classes[label].append(new)
        for items in self.classes:
            for item in items:
                item.age += 1

    def make_room(self, new, label):
        if len(self.classes[label]) < self.capacity / self.num_classes:
            if sum(map(len, self.classes)) < self.capacity:
                return True
            most = max(map(len, self.classes))
            rivals = [items for items in self.classes if len(items) == most]
        else:
            rivals = [self.classes[label]]
        worst_items, worst = None, None
        for items in rivals:
            for item in items:
                if worst is None or self.score(item) >= self.score(worst):
                    worst_items, worst = items, item
        if self.score(worst) <= self.score(new):
            return False
        worst_items.remove(worst)
        return True


def images_of(values: range) -> torch.Tensor:
    return torch.tensor(list(values), dtype=torch.float32).view(-1, 1, 1, 1)


offers = st.tuples(
    st.integers(0, 99),  # label, taken modulo the number of classes
    st.sampled_from([0.0, 0.25, 0.5]) | st.floats(0, 2, width=32),  # uncertainty, often equal to another one
)


@settings(max_examples=200, deadline=None)
@given(
    capacity=st.integers(1, 12),
    num_classes=st.integers(2, 20),
    lambdas=st.sampled_from([(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.5, 2.0)]),
    batches=st.lists(st.tuples(st.lists(offers, min_size=1, max_size=25), st.booleans()), max_size=6),
)
def test_contents_and_ages_equal_the_rules_for_any_sequence(capacity, num_classes, lambdas, batches):
    memory, reference = CSTU(capacity, num_classes, *lambdas), Lists(capacity, num_classes, *lambdas)
    offered = 0
    for batch, save_and_load in batches:
        labels = [label % num_classes for label, _ in batch]
        uncertainties = [uncertainty for _, uncertainty in batch]
        values = range(offered, offered + len(batch))
        offered += len(batch)
        memory.add(images_of(values), torch.tensor(labels), torch.tensor(uncertainties))
        for value, label, uncertainty in zip(values, labels, uncertainties, strict=True):
            reference.offer(value, label, uncertainty)
        if save_and_load:
            state = memory.state_dict()
            memory = CSTU(capacity, num_classes, *lambdas)
            memory.load_state_dict(state)
        images, ages = memory.contents()
        items = [item for items in reference.classes for item in items]
        assert images.flatten().tolist() == [item.value for item in items]
        assert ages.tolist() == [item.age for item in items]
        assert memory.counts().tolist() == [len(items) for items in reference.classes]
        assert len(memory) == len(items)


@pytest.mark.parametrize(("num_classes", "room"), [(10, 7), (100, 1)])
def test_room_of_a_class_is_a_real_number(num_classes, room):
    memory = CSTU(64, num_classes)
    memory.add(images_of(range(30)), torch.zeros(30, dtype=torch.int64), torch.rand(30))
    assert memory.counts()[0] == room


def test_eight_bit_images_stay_eight_bit_and_floats_promote_them():
    memory = CSTU(4, 2)
    images = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    memory.add(images, torch.tensor([0, 1]), torch.tensor([0.1, 0.2]))
    assert torch.equal(memory.contents()[0], images)
    bytes_before = memory.nbytes
    memory.add(torch.rand(1, 3, 4, 4), torch.tensor([0]), torch.tensor([0.1]))
    assert torch.equal(memory.contents()[0][[0, 2]], images / 255)
    assert memory.nbytes == 4 * bytes_before


def test_state_shares_no_memory_and_clear_forgets():
    memory = CSTU(4, 2)
    memory.add(images_of(range(4)), torch.tensor([0, 0, 1, 1]), torch.full((4,), 0.5))
    state = memory.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    memory.add(images_of(range(4, 8)), torch.tensor([0, 0, 1, 1]), torch.zeros(4))
    assert all(torch.equal(kept[name], state[name]) for name in state)
    memory.clear()
    assert len(memory) == 0
    with pytest.raises(ValueError, match="memory is empty"):
        memory.contents()
    memory.load_state_dict(CSTU(4, 2).state_dict())
    memory.add(torch.rand(1, 3, 5, 5), torch.tensor([1]), torch.tensor([0.5]))
    assert memory.counts().tolist() == [0, 1]


GOOD = images_of(range(2))
LABELS = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("images", "labels", "uncertainties", "words"),
    [
        (GOOD[0], LABELS, torch.rand(2), "images"),
        (torch.rand(2, 3, 1, 1), LABELS, torch.rand(2), "images must keep the shape"),
        (GOOD, torch.tensor([0, 2]), torch.rand(2), r"labels must be in 0\.\.1"),
        (GOOD, LABELS, torch.rand(3), "uncertainties"),
        (GOOD, LABELS, torch.tensor([0, 1]), "uncertainties"),
        (GOOD, LABELS, torch.tensor([0.0, torch.nan]), "uncertainties must be finite"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(images, labels, uncertainties, words):
    memory = CSTU(4, 2)
    memory.add(GOOD, LABELS, torch.rand(2))
    before = memory.state_dict()
    with pytest.raises(ValueError, match=words):
        memory.add(images, labels, uncertainties)
    after = memory.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_impossible_sizes_and_foreign_states_are_refused():
    with pytest.raises(ValueError, match="capacity"):
        CSTU(0, 2)
    with pytest.raises(ValueError, match="num_classes"):
        CSTU(4, 1)
    memory = CSTU(4, 2)
    memory.add(GOOD, LABELS, torch.rand(2))
    state = memory.state_dict()
    for change in ({"capacity": torch.tensor(5)}, {"num_classes": torch.tensor(3)}, {"ages": torch.zeros(1)}):
        with pytest.raises(ValueError, match=next(iter(change))):
            memory.load_state_dict({**state, **change})
    grown = {name: state[name].repeat_interleave(3, 0) for name in ("images", "labels", "ages", "uncertainties")}
    with pytest.raises(ValueError, match="more than its capacity"):
        memory.load_state_dict({**state, **grown})
    with pytest.raises(ValueError, match="keys"):
        memory.load_state_dict({})
    assert len(memory) == 2
