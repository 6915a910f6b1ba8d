import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from scipy.stats import entropy as scipy_entropy

from grotta.functional import distillation_loss, entropy, soft_cross_entropy, softmax_entropy


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(0)
    teacher = torch.randn(9, 7, generator=generator, dtype=torch.float64).softmax(dim=1)
    return teacher, 5 * torch.randn(9, 7, generator=generator, dtype=torch.float64)


def test_cross_entropy_equals_the_sum_over_classes(pair):
    teacher, logits = pair
    expected = -(teacher.numpy() * log_softmax(logits.numpy(), axis=1)).sum(axis=1)
    assert np.allclose(soft_cross_entropy(teacher, logits).numpy(), expected, atol=1e-12)


def test_cross_entropy_of_a_certain_teacher_is_that_of_its_label(pair):
    _, logits = pair
    labels = torch.arange(9) % 7
    certain = torch.eye(7, dtype=torch.float64)[labels]
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(soft_cross_entropy(certain, logits), expected)


def test_gradient_is_the_difference_of_the_predictions(pair):
    teacher, logits = pair
    logits.requires_grad_()
    soft_cross_entropy(teacher, logits).sum().backward()
    assert torch.allclose(logits.grad, logits.detach().softmax(dim=1) - teacher)


def test_distillation_averages_over_the_batch_whatever_the_weights(pair):
    teacher, logits = pair
    per_sample = soft_cross_entropy(teacher, logits)
    weights = torch.linspace(0, 2, 9, dtype=torch.float64)
    assert torch.allclose(distillation_loss(teacher, logits), per_sample.sum() / 9)
    assert torch.allclose(distillation_loss(teacher, logits, weights=weights), (weights * per_sample).sum() / 9)
    assert torch.allclose(distillation_loss(teacher, logits, per_class=True), per_sample.sum() / 63)


def test_entropy_from_logits_equals_scipy(pair):
    _, logits = pair
    assert np.allclose(softmax_entropy(logits).numpy(), scipy_entropy(softmax(logits.numpy(), axis=1), axis=1))


def test_entropy_from_logits_is_finite_for_certain_predictions():
    logits = torch.tensor([[1e4, 0.0, -1e4]], requires_grad=True)
    value = softmax_entropy(logits)
    value.sum().backward()
    assert value.item() == 0
    assert torch.isfinite(logits.grad).all()


def test_entropy_from_probabilities_adds_eps_inside_the_logarithm(pair):
    teacher, _ = pair
    p = teacher.numpy()
    assert np.allclose(entropy(teacher).numpy(), -(p * np.log(p + 1e-6)).sum(axis=1), atol=1e-12)
    assert np.allclose(entropy(teacher, eps=0.0).numpy(), scipy_entropy(p, axis=1))
    assert torch.isfinite(entropy(torch.eye(3))).all()


def test_bad_input_is_named(pair):
    teacher, logits = pair
    with pytest.raises(ValueError, match=r"target_probs and logits must have the same shape.*\(9, 7\).*\(9, 6\)"):
        soft_cross_entropy(teacher, logits[:, :6])
    with pytest.raises(ValueError, match=r"weights must have shape \(9,\).*\(9, 1\)"):
        distillation_loss(teacher, logits, weights=torch.ones(9, 1))
