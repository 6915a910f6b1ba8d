"""The training loop."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from grotta.models import Recipe, accuracy, train
from grotta.models.checkpoint import write_checkpoint
from grotta.models.compact import CompactResNet
from grotta.models.initialise import initialise
from grotta.models.training import batches, learning_rate, shift_and_flip

SMALL = Recipe(epochs=3, batch_size=16, lr=0.05, seed=5)
STATISTICS = ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))


def make_model(seed=0, num_classes=2):
    model = CompactResNet(4, 2, [(8, True)], num_classes=num_classes, statistics=STATISTICS)
    initialise(model, torch.Generator().manual_seed(seed))
    return model


@pytest.fixture(scope="module")
def problem():
    """Bright and dark images, which any network tells apart."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (100,), generator=generator)
    images = torch.randint(0, 100, (100, 3, 8, 8), generator=generator) + 120 * labels[:, None, None, None]
    return images.to(torch.uint8), labels


def assert_same_weights(first, second):
    for (name, one), two in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(one, two), name


def test_learning_rate_rises_to_its_peak_and_falls_to_almost_zero():
    rates = [learning_rate(Recipe(lr=0.4, warmup=0.25), step, 100) for step in range(100)]
    assert max(rates) == rates[24] == pytest.approx(0.4)
    assert rates[:25] == sorted(rates[:25])
    assert rates[24:] == sorted(rates[24:], reverse=True)
    assert 0 < rates[-1] < 0.01


@given(total=st.integers(1, 300), warmup=st.floats(0, 0.99))
def test_learning_rate_stays_in_range_for_all_lengths(total, warmup):
    recipe = Recipe(lr=1.0, warmup=warmup)
    assert all(0 < learning_rate(recipe, step, total) <= 1 for step in range(total))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), side=st.integers(1, 9), share=st.sampled_from([0.0, 0.125, 0.3]), flip=st.booleans())
def test_shift_and_flip_moves_whole_images_and_fills_with_zeros(seed, side, share, flip):
    images = torch.randint(1, 256, (3, 2, side, side), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)
    moved = shift_and_flip(images, Recipe(shift=share, flip=flip), torch.Generator().manual_seed(seed))
    reach = round(share * side)
    for image, result in zip(images, moved, strict=True):
        candidates = []
        for picture in (image, image.flip(2)) if flip else (image,):
            for down in range(-reach, reach + 1):
                for right in range(-reach, reach + 1):
                    candidate = torch.zeros_like(picture)
                    for row in range(side):
                        for column in range(side):
                            if 0 <= row - down < side and 0 <= column - right < side:
                                candidate[:, row, column] = picture[:, row - down, column - right]
                    candidates.append(candidate)
        assert any(torch.equal(result, candidate) for candidate in candidates)


def test_flips_half_of_the_images_on_average():
    images = torch.tensor([0, 1], dtype=torch.uint8).view(1, 1, 1, 2).expand(2000, 3, 1, 2)
    moved = shift_and_flip(images, Recipe(shift=0.0), torch.Generator().manual_seed(0))
    assert 0.45 < moved[:, 0, 0, 0].float().mean() < 0.55


@given(count=st.integers(1, 200), size=st.integers(1, 64), seed=st.integers(0, 100))
def test_batches_are_full_and_use_no_image_twice(count, size, seed):
    parts = list(batches(count, Recipe(batch_size=size), torch.Generator().manual_seed(seed)))
    used = torch.cat(parts).tolist()
    assert len(set(used)) == len(used)
    assert {len(part) for part in parts} == {min(size, count)}
    assert count - len(used) < size


def test_training_learns(problem):
    model = make_model()
    history = train(model, *problem, problem, replace(SMALL, epochs=6))
    assert [result.epoch for result in history] == list(range(6))
    assert history[-1].loss < history[0].loss
    assert history[-1].accuracy > 0.95


def test_accuracy_equals_a_loop_over_single_images_and_leaves_the_mode(problem):
    images, labels = problem
    model = make_model().train()
    measured = accuracy(model, images, labels, batch_size=7)
    assert model.training
    model.eval()
    right = sum(int(model(image[None].float() / 255).argmax() == label) for image, label in zip(images, labels))
    assert measured == right / len(labels)


def test_same_seed_gives_the_same_bits_and_another_seed_others(problem):
    models = [make_model() for _ in range(3)]
    for model, seed in zip(models, (5, 5, 6), strict=True):
        train(model, *problem, problem, replace(SMALL, epochs=1, seed=seed))
    assert_same_weights(models[0], models[1])
    assert not torch.equal(models[0].classifier.weight, models[2].classifier.weight)


def test_the_global_generator_is_not_used(problem):
    model = make_model()
    before = torch.random.get_rng_state()
    train(model, *problem, problem, replace(SMALL, epochs=1))
    assert torch.equal(torch.random.get_rng_state(), before)


class KilledError(Exception):
    pass


def test_a_resumed_run_gives_the_same_bits_as_an_uninterrupted_one(problem, tmp_path):
    whole, broken, resumed = make_model(), make_model(), make_model(seed=9)
    checkpoint = tmp_path / "run" / "checkpoint.pt"

    def kill_in_third_epoch(step, total):
        if step > 2 * total // 3 + 1:
            raise KilledError

    expected = train(whole, *problem, problem, SMALL)
    with pytest.raises(KilledError):
        train(broken, *problem, problem, SMALL, checkpoint=checkpoint, on_step=kill_in_third_epoch)
    history = train(resumed, *problem, problem, SMALL, checkpoint=checkpoint, resume=True)
    assert_same_weights(whole, resumed)
    assert [(r.loss, r.accuracy) for r in history] == [(r.loss, r.accuracy) for r in expected]
    assert [entry.name for entry in checkpoint.parent.iterdir()] == ["checkpoint.pt"]


def test_resuming_a_finished_run_restores_it(problem, tmp_path):
    done, restored = make_model(), make_model(seed=9)
    train(done, *problem, problem, SMALL, checkpoint=tmp_path / "c.pt")
    epochs = []
    train(restored, *problem, problem, SMALL, checkpoint=tmp_path / "c.pt", resume=True, on_epoch=epochs.append)
    assert_same_weights(done, restored)
    assert epochs == []


def test_resuming_with_another_recipe_is_refused_and_changes_nothing(problem, tmp_path):
    train(make_model(), *problem, problem, SMALL, checkpoint=tmp_path / "c.pt")
    model = make_model(seed=9)
    with pytest.raises(ValueError, match=r"another recipe \(lr: 0.05 there, 0.1 now\)"):
        train(model, *problem, problem, replace(SMALL, lr=0.1), checkpoint=tmp_path / "c.pt", resume=True)
    assert_same_weights(model, make_model(seed=9))


def test_a_checkpoint_of_another_training_is_refused(problem, tmp_path):
    recipe = replace(SMALL, epochs=1)
    train(make_model(), *problem, problem, recipe, checkpoint=tmp_path / "c.pt", title="photo")
    with pytest.raises(ValueError, match=r"of another training \(photo\), not of this one \(sketch\)"):
        train(make_model(), *problem, problem, recipe, checkpoint=tmp_path / "c.pt", resume=True, title="sketch")


def test_a_checkpoint_of_images_of_another_number_or_shape_is_refused(problem, tmp_path):
    images, labels = problem
    recipe = replace(SMALL, epochs=1)
    train(make_model(), *problem, problem, recipe, checkpoint=tmp_path / "c.pt")
    small = images[:, :, :6, :6]
    with pytest.raises(ValueError, match=r"other data \(image shape: \[3, 8, 8\] there, \[3, 6, 6\] now\)"):
        train(make_model(), small, labels, (small, labels), recipe, checkpoint=tmp_path / "c.pt", resume=True)
    with pytest.raises(ValueError, match=r"other data \(training images: 100 there, 90 now\)"):
        train(make_model(), images[:90], labels[:90], problem, recipe, checkpoint=tmp_path / "c.pt", resume=True)


def test_a_checkpoint_of_a_network_with_other_classes_is_refused_and_changes_nothing(problem, tmp_path):
    recipe = replace(SMALL, epochs=1)
    train(make_model(), *problem, problem, recipe, checkpoint=tmp_path / "c.pt")
    model = make_model(seed=9, num_classes=3)
    with pytest.raises(ValueError, match=r"c\.pt does not fit CompactResNet.*the file has 2 classes, the model 3"):
        train(model, *problem, problem, recipe, checkpoint=tmp_path / "c.pt", resume=True)
    assert_same_weights(model, make_model(seed=9, num_classes=3))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"<html>"])
def test_a_damaged_checkpoint_is_refused(problem, tmp_path, content):
    (tmp_path / "c.pt").write_bytes(content)
    with pytest.raises(ValueError, match=r"c\.pt is not a training checkpoint of this version of grotta; remove it"):
        train(make_model(), *problem, problem, SMALL, checkpoint=tmp_path / "c.pt", resume=True)


def test_one_flipped_bit_of_a_checkpoint_is_refused(problem, tmp_path):
    path = tmp_path / "c.pt"
    train(make_model(), *problem, problem, replace(SMALL, epochs=1), checkpoint=path)
    content = path.read_bytes()
    for position in [*range(0, 110, 9), *range(110, len(content), len(content) // 40)]:
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        with pytest.raises(ValueError, match=r"c\.pt is (damaged|not a training checkpoint).*; remove it"):
            train(make_model(), *problem, problem, replace(SMALL, epochs=2), checkpoint=path, resume=True)


def test_another_file_is_no_training_checkpoint(problem, tmp_path):
    torch.save({"model": {}}, tmp_path / "c.pt")
    with pytest.raises(ValueError, match="not a training checkpoint of this version of grotta; remove it"):
        train(make_model(), *problem, problem, SMALL, checkpoint=tmp_path / "c.pt", resume=True)


def test_a_full_disk_is_named_and_leaves_the_old_checkpoint_and_nothing_else(tmp_path, limited_files):
    path = tmp_path / "c.pt"
    write_checkpoint(path, {"weights": torch.zeros(10)})
    before = path.read_bytes()
    with limited_files(20_000), pytest.raises(OSError, match=f"File too large: '{path}'"):
        write_checkpoint(path, {"weights": torch.zeros(100_000)})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class OnDemand:
    """Images that are made when they are asked for."""

    def __init__(self, images):
        self.images = images
        self.most = 0

    def __getitem__(self, indices):
        self.most = max(self.most, len(indices))
        return torch.stack([self.images[int(index)] for index in indices])


def test_images_by_index_give_the_same_bits_as_a_tensor_and_are_never_all_in_memory(problem):
    images, labels = problem
    recipe = replace(SMALL, epochs=1)
    plain, lazy = make_model(), make_model()
    on_demand = OnDemand(images)
    train(plain, images, labels, problem, recipe)
    train(lazy, on_demand, labels, problem, recipe)
    assert_same_weights(plain, lazy)
    assert on_demand.most == recipe.batch_size


def test_a_diverged_training_is_an_error_and_leaves_the_last_checkpoint(problem, tmp_path):
    recipe = replace(SMALL, lr=1e30)
    with pytest.raises(
        ValueError,
        match=r"lr must be smaller than 1e\+30: the training diverged in epoch 1 \(loss (nan|inf)",
    ):
        train(make_model(), *problem, problem, recipe, checkpoint=tmp_path / "c.pt")
    assert list(tmp_path.iterdir()) == []


def test_weights_that_the_last_step_made_infinite_are_an_error(problem):
    images, labels = problem
    few = images[:4], labels[:4]
    with pytest.raises(ValueError, match=r"diverged in epoch 1 \(loss 0\."):
        train(make_model(), *few, few, replace(SMALL, lr=3e38, momentum=30.0, epochs=1))


def test_logits_that_are_not_numbers_are_never_right(problem):
    images, labels = problem
    model = make_model()
    model.classifier.bias.data[:] = float("nan")
    assert accuracy(model, images, labels) == 0


def test_fewer_images_than_a_batch_still_train(problem):
    images, labels = problem
    steps = []
    train(
        make_model(),
        images[:5],
        labels[:5],
        (images[:5], labels[:5]),
        replace(SMALL, epochs=2),
        on_step=lambda step, total: steps.append((step, total)),
    )
    assert steps == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("lr", -1.0),
        ("lr", float("nan")),
        ("lr", float("inf")),
        ("momentum", float("inf")),
        ("weight_decay", float("inf")),
        ("warmup", 1.0),
        ("shift", -0.1),
    ],
)
def test_a_bad_setting_is_named(setting, value):
    with pytest.raises(ValueError, match=setting):
        Recipe(**{setting: value})


def test_initialise_is_a_function_of_the_generator_alone():
    layers = [nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2)) for _ in range(2)]
    for layer in layers:
        initialise(layer, torch.Generator().manual_seed(1))
    assert_same_weights(*layers)
    assert layers[0][0].bias.abs().sum() == 0
