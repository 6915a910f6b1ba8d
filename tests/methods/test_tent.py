import pytest
import torch

from grotta.methods import create


def entropy_by_hand(logits):
    total = 0.0
    for row in logits:
        p = row.exp() / row.exp().sum()
        total = total - (p * p.log()).sum()
    return total / len(logits)


def test_output_is_the_prediction_of_before_the_update_and_the_update_is_adam_on_the_mean_entropy(by_hand):
    by_hand.assert_adam_on("tent", entropy_by_hand)


def test_official_imagenet_settings_are_sgd_with_nesterov_momentum(by_hand):
    net = by_hand.net()
    adapter = create("tent", net, preset="official-imagenet")
    weights = by_hand.leaf_weights(net)
    velocity = {name: torch.zeros_like(weights[name]) for name in by_hand.affine}
    for step in range(3):
        x = by_hand.images(7, seed=step)
        adapter(x)
        loss = entropy_by_hand(by_hand.forward(weights, x)[0])
        gradients = torch.autograd.grad(loss, [weights[name] for name in by_hand.affine])
        for name, gradient in zip(by_hand.affine, gradients):
            velocity[name] = 0.9 * velocity[name] + gradient
            step_taken = 2.5e-4 * (gradient + 0.9 * velocity[name])
            weights[name] = (weights[name] - step_taken).detach().requires_grad_()
        by_hand.assert_same(adapter.student, weights, by_hand.affine)


def test_nothing_but_affine_parameters_is_trained_and_one_pass_is_run(by_hand):
    adapter = create("tent", by_hand.net())
    passes = []
    adapter.student.register_forward_hook(lambda *_: passes.append(1))
    before = {name: tensor.clone() for name, tensor in adapter.student.state_dict().items()}
    adapter(by_hand.images(5))
    changed = {name for name, tensor in adapter.student.state_dict().items() if not tensor.equal(before[name])}
    assert changed == {f"body.{name}" for name in by_hand.affine}
    assert len(passes) == 1


def test_an_unknown_optimizer_is_refused_by_name(by_hand):
    with pytest.raises(ValueError, match="optimizer must be one of 'adam', 'sgd', got 'lion'"):
        create("tent", by_hand.net(), optimizer="lion")
