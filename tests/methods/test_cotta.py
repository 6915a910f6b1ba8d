import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grotta.augment import strong_view
from grotta.methods import create
from grotta.methods.cotta import successes


def count_passes(network):
    passes = []
    network.register_forward_hook(lambda *_: passes.append(1))
    return passes


def anchor_confidence_by_hand(by_hand, net, x):
    with torch.no_grad():
        probs = by_hand.forward(by_hand.leaf_weights(net), x)[0].softmax(1)
    return sum(max(row.tolist()) for row in probs) / len(probs)


def cross_entropy_by_hand(target, student):
    """Mean over the samples of -sum_c softmax(target)_c log softmax(student)_c."""
    total = 0.0
    for t, s in zip(target, student):
        total = total - ((t.exp() / t.exp().sum()) * (s - s.exp().sum().log())).sum()
    return total / len(target)


def shake(network, seed=1):
    """Move the student away from the teacher: at the very start the two agree and the gradient is 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in network.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype)


# The target --------------------------------------------------------------------------------------------------------


def test_a_confident_anchor_makes_the_plain_teacher_the_target_with_a_single_pass(by_hand):
    net, x = by_hand.net(), by_hand.images(6)
    confidence = anchor_confidence_by_hand(by_hand, net, x)
    adapter = create("cotta", net, anchor_confidence=confidence - 1e-6)
    passes = {name: count_passes(getattr(adapter, name)) for name in ("anchor", "teacher", "student")}
    drawn = adapter.generator.get_state()
    output = adapter.predict(x)
    expected = by_hand.forward(by_hand.leaf_weights(net), x)[0].softmax(1)
    torch.testing.assert_close(output, expected.detach(), rtol=0, atol=1e-10)
    assert adapter.generator.get_state().equal(drawn)
    assert [len(p) for p in passes.values()] == [1, 1, 0]
    adapter(x)
    assert [len(p) for p in passes.values()] == [2, 2, 1]


def test_an_anchor_in_doubt_makes_the_mean_logits_of_32_views_the_target(by_hand):
    net, x = by_hand.net(), by_hand.images(6)
    confidence = anchor_confidence_by_hand(by_hand, net, x)
    adapter = create("cotta", net, anchor_confidence=confidence + 1e-6, seed=3)
    passes = {name: count_passes(getattr(adapter, name)) for name in ("anchor", "teacher", "student")}
    generator = torch.Generator().manual_seed(3)
    weights = by_hand.leaf_weights(net)
    views = [by_hand.forward(weights, strong_view(x, generator)) for _ in range(32)]
    logits, features = (sum(part) / 32 for part in zip(*views))
    torch.testing.assert_close(adapter(x), logits.softmax(1).detach(), rtol=0, atol=1e-9)
    assert [len(p) for p in passes.values()] == [1, 32, 1]

    adapter.reset()
    torch.testing.assert_close(adapter.infer(x).features, features.detach(), rtol=0, atol=1e-9)


def test_predict_gives_what_the_next_call_gives_and_draws_nothing(by_hand):
    adapter, x = create("cotta", by_hand.net(), anchor_confidence=1.0, views=3), by_hand.images(5)
    adapter(x)
    assert adapter.predict(x).equal(adapter.predict(x))
    assert adapter.predict(x).equal(adapter(x))


# The update --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [False, True])
def test_student_takes_an_adam_step_on_all_parameters_and_the_teacher_follows(by_hand, symmetric):
    net = by_hand.net()
    adapter = create("cotta", net, lr=0.01, nu=0.1, restore=0.0, anchor_confidence=0.0, symmetric=symmetric)
    shake(adapter.student)
    student, teacher = by_hand.leaf_weights(adapter.student.body), by_hand.leaf_weights(net)
    adam = by_hand.Adam(lr=0.01)
    for step in range(3):
        x = by_hand.images(6, seed=step)
        target = by_hand.forward(teacher, x)[0].detach()
        torch.testing.assert_close(adapter(x), target.softmax(1), rtol=0, atol=1e-9)
        logits = by_hand.forward(student, x)[0]
        loss = cross_entropy_by_hand(target, logits)
        if symmetric:
            loss = 0.5 * loss + 0.5 * cross_entropy_by_hand(logits, target)
        assert adapter.last.loss == pytest.approx(loss.item(), abs=1e-9)
        adam.step(student, loss, by_hand.parameters)
        for name in by_hand.parameters:
            teacher[name] = (0.9 * teacher[name] + 0.1 * student[name]).detach()
        by_hand.assert_same(adapter.student, student, by_hand.parameters, atol=1e-9)
        by_hand.assert_same(adapter.teacher, teacher, by_hand.parameters, atol=1e-9)


def test_the_anchor_shares_the_models_weights_and_never_moves(by_hand):
    net = by_hand.net()
    adapter = create("cotta", net, views=2)
    assert adapter.anchor.body.conv1.weight.data_ptr() == net.conv1.weight.data_ptr()
    assert adapter.student.body.conv1.weight.data_ptr() != net.conv1.weight.data_ptr()
    adapter(by_hand.images(4))
    by_hand.assert_same(adapter.anchor, dict(net.named_parameters()), by_hand.parameters, atol=0.0)


# The restoration ---------------------------------------------------------------------------------------------------


def test_restored_elements_are_the_source_and_all_others_are_as_without_restoration(by_hand):
    """Same seed, same step: only what is restored differs, and the rate is RST up to five standard deviations."""
    net, x = by_hand.net(classes=200), by_hand.images(16)
    free, restored = (create("cotta", net, restore=rate, anchor_confidence=0.0) for rate in (0.0, 0.2))
    for adapter in (free, restored):
        shake(adapter.student)
        adapter(x)
    source = dict(net.named_parameters())
    went_back = total = 0
    for (name, moved), kept in zip(free.student.body.named_parameters(), restored.student.body.parameters()):
        back = moved != kept
        assert kept[back].equal(source[name][back])
        went_back += int(back.sum())
        total += moved.numel()
    assert abs(went_back - 0.2 * total) < 5 * math.sqrt(total * 0.2 * 0.8)


def test_certain_restoration_is_the_source_model_in_any_memory_format(by_hand):
    net = by_hand.net().to(memory_format=torch.channels_last)
    assert not net.conv2.weight.is_contiguous()
    adapter = create("cotta", net, restore=1.0, anchor_confidence=0.0)
    adapter(by_hand.images(4))
    by_hand.assert_same(adapter.student, dict(net.named_parameters()), by_hand.parameters, atol=0.0)


def test_every_trial_succeeds_independently_with_the_given_probability():
    generator = torch.Generator().manual_seed(0)
    repeats, trials, rate = 4000, 12, 0.3
    hits = torch.zeros(repeats, trials, dtype=torch.float64)
    for row in hits:
        row[successes(trials, rate, generator)] = 1
    deviation = math.sqrt(rate * (1 - rate) / repeats)
    assert ((hits.mean(0) - rate).abs() < 5 * deviation).all()
    together = hits.T @ hits / repeats  # of two different trials: both succeed with the square of the rate
    off_diagonal = together[~torch.eye(trials, dtype=torch.bool)]
    assert ((off_diagonal - rate**2).abs() < 5 * math.sqrt(rate**2 * (1 - rate**2) / repeats)).all()


@given(st.integers(1, 500), st.floats(0, 1), st.integers(0, 2**32))
def test_successes_are_distinct_ordered_and_within_the_trials(trials, rate, seed):
    found = successes(trials, rate, torch.Generator().manual_seed(seed)).tolist()
    assert found == sorted(set(found))
    assert all(0 <= position < trials for position in found)
    if rate in (0.0, 1.0):
        assert len(found) == trials * rate


# Settings ----------------------------------------------------------------------------------------------------------


def test_official_settings_follow_the_data_set(by_hand):
    net = by_hand.net()
    c10, c100, imagenet = (
        create("cotta", net, preset=f"official{suffix}") for suffix in ("", "-cifar100", "-imagenet")
    )
    assert (c10.restore, c10.anchor_confidence, c10.views, c10.nu) == (0.01, 0.92, 32, 0.001)
    assert (c100.restore, c100.anchor_confidence) == (0.01, 0.72)
    assert (imagenet.restore, imagenet.anchor_confidence, imagenet.symmetric) == (0.001, 0.1, True)
    settings = imagenet.optimizer.param_groups[0]
    assert (settings["lr"], settings["momentum"], settings["nesterov"]) == (0.01, 0.9, True)


@pytest.mark.parametrize("option", [{"restore": 1.1}, {"anchor_confidence": -0.1}, {"nu": 2}, {"views": 0}, {"lr": 0}])
def test_an_option_out_of_range_is_refused_by_name(by_hand, option):
    with pytest.raises(ValueError, match=next(iter(option))):
        create("cotta", by_hand.net(), **option)


def test_images_without_a_strong_view_are_refused_before_anything_is_done(by_hand):
    adapter = create("cotta", by_hand.net())
    before = adapter.state_dict()
    with pytest.raises(ValueError, match="pixels"):
        adapter(by_hand.images(4, size=3))
    assert all(tensor.equal(before[key]) for key, tensor in adapter.state_dict().items())
