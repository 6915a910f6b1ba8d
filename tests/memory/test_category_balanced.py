"""The bank against the obvious one: a list of deques."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grotta.memory import CategoryBalancedBank

SHAPE = (2, 2, 3)


def batch(size: int, seed: int, *, eight_bit: bool = False, channels_last: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (size, *SHAPE), generator=generator, dtype=torch.uint8)
    images = images if eight_bit else images.float() / 255 + torch.rand(images.shape, generator=generator) / 512
    return images.contiguous(memory_format=torch.channels_last) if channels_last else images


def filled_bank(capacity: int = 12, num_classes: int = 3, size: int = 40) -> CategoryBalancedBank:
    bank = CategoryBalancedBank(capacity, num_classes)
    bank.add(batch(size, 1), torch.arange(size) % num_classes)
    return bank


def reload(bank: CategoryBalancedBank) -> CategoryBalancedBank:
    copy = CategoryBalancedBank(bank.capacity, bank.num_classes)
    copy.load_state_dict(bank.state_dict())
    return copy


class Deques:
    """The rule itself: one deque a class; values as float once any float image came."""

    def __init__(self, capacity: int, num_classes: int) -> None:
        room = -(-capacity // num_classes)
        self.queues: list[deque[Tensor]] = [deque(maxlen=room) for _ in range(num_classes)]
        self.floating = False

    def add(self, images: Tensor, labels: Tensor) -> None:
        self.floating |= images.dtype != torch.uint8
        for image, label in zip(images, labels.tolist(), strict=True):
            self.queues[label].append(image)

    def items(self, label: int) -> Tensor:
        as_float = [image / 255 if image.dtype == torch.uint8 else image for image in self.queues[label]]
        return torch.stack(as_float if self.floating else list(self.queues[label]))


steps = st.lists(
    st.tuples(
        st.lists(st.integers(0, 99), min_size=1, max_size=30),  # labels, taken modulo the number of classes
        st.booleans(),  # 8-bit
        st.booleans(),  # channels_last
        st.booleans(),  # save and load after this batch
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(capacity=st.integers(1, 40), num_classes=st.integers(1, 8), steps=steps)
def test_contents_equal_a_list_of_deques_for_any_sequence(capacity, num_classes, steps):
    bank, reference = CategoryBalancedBank(capacity, num_classes), Deques(capacity, num_classes)
    for seed, (labels, eight_bit, channels_last, save_and_load) in enumerate(steps):
        images = batch(len(labels), seed, eight_bit=eight_bit, channels_last=channels_last)
        classes = torch.tensor(labels) % num_classes
        bank.add(images, classes)
        reference.add(images, classes)
        bank = reload(bank) if save_and_load else bank
    assert bank.counts().tolist() == [len(queue) for queue in reference.queues]
    assert len(bank) == sum(len(queue) for queue in reference.queues)
    for label, queue in enumerate(reference.queues):
        if queue:
            assert torch.equal(bank.items(label), reference.items(label))
            assert bank.items(label).dtype == (torch.float32 if reference.floating else torch.uint8)


@settings(max_examples=60, deadline=None)
@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=40), n=st.integers(1, 40), seed=st.integers(0, 99))
def test_a_sample_is_distinct_images_of_the_bank(labels, n, seed):
    bank = CategoryBalancedBank(16, 4)
    images = torch.arange(len(labels), dtype=torch.float32).view(-1, 1, 1, 1)
    bank.add(images, torch.tensor(labels))
    drawn = bank.sample(n, torch.Generator().manual_seed(seed)).flatten().tolist()
    inside = {value for c in set(labels) for value in bank.items(c).flatten().tolist()}
    assert len(drawn) == min(n, len(bank))
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) <= inside


def test_every_image_is_drawn_equally_often_and_at_every_place():
    bank = CategoryBalancedBank(8, 2)
    bank.add(torch.arange(5.0).view(-1, 1, 1, 1), torch.tensor([0, 0, 0, 0, 1]))
    generator = torch.Generator().manual_seed(0)
    draws = [tuple(bank.sample(2, generator).flatten().int().tolist()) for _ in range(4000)]
    pairs = Counter(draws)
    assert len(pairs) == 20
    assert all(abs(count - 200) < 5 * 200**0.5 for count in pairs.values())


def test_same_seed_draws_the_same_bits():
    bank = filled_bank()
    first, second, other = (bank.sample(8, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_a_loaded_bank_goes_on_bit_identically():
    bank = CategoryBalancedBank(10, 3)
    bank.add(batch(7, 0, eight_bit=True, channels_last=True), torch.tensor([0, 0, 0, 0, 0, 2, 2]))
    copy = reload(bank)
    for seed in range(3):
        for one in (bank, copy):
            one.add(batch(5, seed, eight_bit=True), torch.tensor([1, 2, 2, 0, 2]))
        draws = [one.sample(6, torch.Generator().manual_seed(seed)) for one in (bank, copy)]
        assert torch.equal(*draws)
        assert draws[0].stride() == draws[1].stride()


def test_state_is_compact_and_shares_no_memory_with_the_bank():
    bank = CategoryBalancedBank(1000, 10)
    bank.add(batch(3, 0), torch.tensor([1, 1, 4]))
    state = bank.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    assert len(state["images"]) == 3
    assert all(tensor.is_contiguous() for tensor in state.values())
    copy = reload(bank)
    for one in (bank, copy):
        one.add(batch(8, 1), torch.tensor([1, 1, 4, 1, 4, 4, 1, 1]))
    assert all(torch.equal(kept[name], state[name]) for name in state)


def test_an_empty_bank_can_be_saved_and_loaded():
    bank = filled_bank()
    bank.load_state_dict(CategoryBalancedBank(12, 3).state_dict())
    assert len(bank) == 0
    bank.add(torch.rand(2, 1, 7, 7), torch.tensor([0, 1]))
    assert len(bank) == 2


def test_clear_forgets_images_shape_and_data_type():
    bank = filled_bank()
    bank.clear()
    assert (len(bank), bank.counts().tolist()) == (0, [0, 0, 0])
    bank.add(torch.zeros(1, 1, 9, 9, dtype=torch.uint8), torch.tensor([0]))
    assert bank.sample(1, torch.Generator()).dtype == torch.uint8


def test_eight_bit_images_take_a_quarter_of_the_memory():
    small, large = (CategoryBalancedBank(64, 4) for _ in range(2))
    small.add(batch(1, 0, eight_bit=True), torch.tensor([0]))
    large.add(batch(1, 0), torch.tensor([0]))
    counters = small.nbytes - 65 * 12
    assert large.nbytes - counters == 4 * (small.nbytes - counters)


def test_a_channels_last_batch_comes_out_channels_last():
    bank = CategoryBalancedBank(16, 2)
    images = batch(6, 0, channels_last=True)
    bank.add(images, torch.tensor([0, 1, 0, 1, 0, 1]))
    drawn = bank.sample(4, torch.Generator().manual_seed(0))
    assert drawn.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(bank.items(0), images[::2])


def test_a_bank_filled_in_inference_mode_serves_training_and_the_reverse():
    bank = CategoryBalancedBank(8, 2)
    with torch.inference_mode():
        bank.add(batch(4, 0), torch.tensor([0, 1, 0, 1]))
    bank.add(batch(4, 1).requires_grad_(), torch.tensor([0, 1, 0, 1]))
    with torch.inference_mode():
        drawn = bank.sample(4, torch.Generator())
    weight = torch.ones((), requires_grad=True)
    (drawn * weight).sum().backward()
    assert not drawn.requires_grad
    assert weight.grad is not None


def test_the_newest_images_of_each_class_are_kept_in_order():
    bank = CategoryBalancedBank(6, 2)
    values = torch.arange(9.0).view(-1, 1, 1, 1)
    for part in (values[:4], values[4:]):
        bank.add(part, torch.zeros(len(part), dtype=torch.int64))
    assert bank.items(0).flatten().tolist() == [6, 7, 8]
    assert all(a < b for a, b in pairwise(bank.items(0).flatten().tolist()))
    assert len(bank.items(1)) == 0


GOOD = torch.rand(2, *SHAPE)
LABELS = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("images", "labels", "error", "words"),
    [
        (GOOD[0], LABELS, ValueError, "images must be a non-empty"),
        (GOOD[:0], LABELS[:0], ValueError, "images must be a non-empty"),
        (torch.rand(2, 2, 2, 4), LABELS, ValueError, "images must keep the shape"),
        (GOOD.long(), LABELS, TypeError, "images must be uint8 or floating"),
        (GOOD, LABELS.int(), TypeError, "labels must be int64"),
        (GOOD, LABELS[:1], ValueError, "labels must have shape"),
        (GOOD, torch.tensor([0, 3]), ValueError, r"labels must be in 0\.\.2"),
        (GOOD, torch.tensor([-1, 0]), ValueError, r"labels must be in 0\.\.2"),
        (GOOD.to("meta"), LABELS.to("meta"), ValueError, "images must be on the memory's device"),
        (GOOD, LABELS.to("meta"), ValueError, "labels must be on the images' device"),
    ],
)
def test_bad_batches_are_refused_and_change_nothing(images, labels, error, words):
    bank = filled_bank()
    before = bank.state_dict()
    with pytest.raises(error, match=words):
        bank.add(images, labels)
    after = bank.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(("capacity", "num_classes", "name"), [(0, 3, "capacity"), (3, 0, "num_classes")])
def test_impossible_sizes_are_refused(capacity, num_classes, name):
    with pytest.raises(ValueError, match=name):
        CategoryBalancedBank(capacity, num_classes)


def test_sampling_nothing_or_from_nothing_is_refused():
    with pytest.raises(ValueError, match="n must be at least 1"):
        filled_bank().sample(0, torch.Generator())
    with pytest.raises(ValueError, match="empty bank"):
        CategoryBalancedBank(3, 3).sample(1, torch.Generator())
    with pytest.raises(ValueError, match="empty bank"):
        CategoryBalancedBank(3, 3).items(0)
    with pytest.raises(ValueError, match="label must be in"):
        filled_bank().items(3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"capacity": torch.tensor(13)}, "capacity 13, this one has 12"),
        ({"num_classes": torch.tensor(4)}, "num_classes 4, this one has 3"),
        ({"written": torch.zeros(4, dtype=torch.int64)}, "'written'.* must have shape"),
        ({"images": torch.rand(3, *SHAPE)}, "must hold 12 images"),
        ({"images": torch.rand(12, 4)}, "'images'.* must be"),
        ({"more": torch.zeros(1)}, "must have the keys"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(change, words):
    bank = filled_bank()
    before = bank.state_dict()
    with pytest.raises(ValueError, match=words):
        bank.load_state_dict({**before, **change})
    after = bank.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
