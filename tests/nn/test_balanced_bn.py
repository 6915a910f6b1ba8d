import pytest
import torch
from torch import nn

from grotta.nn import BalancedBN1d, BalancedBN2d, balanced, convert_norm, labelled


def source_layer(channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    bn = nn.BatchNorm2d(channels).double()
    with torch.no_grad():
        for tensor in (bn.weight, bn.bias, bn.running_mean):
            tensor.copy_(torch.randn(channels, generator=generator, dtype=torch.float64))
        bn.running_var.copy_(0.5 + torch.rand(channels, generator=generator, dtype=torch.float64))
    return bn.eval()


class SlowBalancedBN:
    """One channel of one class after the other, with scalars that carry the gradient."""

    def __init__(self, bn, classes, eta, gamma):
        self.weight, self.bias, self.eps = bn.weight, bn.bias, bn.eps
        self.channels, self.classes, self.eta, self.gamma = bn.num_features, classes, eta, gamma
        self.mean = [[bn.running_mean[c] for c in range(self.channels)] for _ in range(classes)]
        self.var = [[bn.running_var[c] for c in range(self.channels)] for _ in range(classes)]

    def __call__(self, x, labels):
        present = sorted(set(labels))
        out = torch.zeros_like(x)
        for c in range(self.channels):
            step, spread, size = {}, {}, {}
            for k in present:
                images = [x[i, c].flatten() for i, label in enumerate(labels) if label == k]
                n = len(images)
                m = 1 / n if n > 1 / self.eta else self.eta
                step[k] = m * sum((image - self.mean[k][c]).mean() for image in images)
                squares = sum(((image - self.mean[k][c]) ** 2).mean() for image in images)
                spread[k], size[k] = m * squares - step[k] ** 2, m * n
            common = sum(step.values()) / len(present)
            means, variances = [], []
            for k in range(self.classes):
                mean, var = self.mean[k][c], self.var[k][c]
                if k in step:
                    mean = mean + (1 - self.gamma) * step[k]
                    var = var + (1 - self.gamma) * (spread[k] - size[k] * var)
                mean = mean + self.gamma * common
                gap = sum(spread.values()) / len(present) - sum(size.values()) / len(present) * var
                means.append(mean)
                variances.append(var + self.gamma * gap)
            mu = sum(means) / self.classes
            var = sum(variances) / self.classes + sum((m - mu) ** 2 for m in means) / (self.classes - 1)
            out[:, c] = (x[:, c] - mu) / (var + self.eps) ** 0.5 * self.weight[c] + self.bias[c]
            for k in range(self.classes):
                self.mean[k][c], self.var[k][c] = means[k].detach(), variances[k].detach()
        return out


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_values_statistics_and_gradients_are_those_of_a_slow_loop(gamma):
    bn = source_layer()
    layer = BalancedBN2d.from_bn(bn, num_classes=4, eta=0.3, gamma=gamma)
    slow = SlowBalancedBN(bn, classes=4, eta=0.3, gamma=gamma)
    for step, labels in enumerate(([0, 0, 0, 0, 0, 2], [1], [3, 3, 2])):  # five of class 0: more than 1 / eta
        x = torch.randn(len(labels), 3, 4, 5, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        x = (x * 2 + 1).requires_grad_()
        with labelled(layer, torch.tensor(labels)):
            fast = layer(x)
        by_hand = slow(x, labels)
        torch.testing.assert_close(fast, by_hand)
        torch.testing.assert_close(layer.class_mean, torch.stack([torch.stack(row) for row in slow.mean]))
        torch.testing.assert_close(layer.class_var, torch.stack([torch.stack(row) for row in slow.var]))
        weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        gradients = [torch.autograd.grad((weights * out).sum(), x)[0] for out in (fast, by_hand)]
        torch.testing.assert_close(*gradients)


def test_without_labels_it_is_evaluation_mode_and_statistics_stay():
    bn = source_layer()
    layer = BalancedBN2d.from_bn(bn, num_classes=4)
    x = torch.randn(6, 3, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(layer(x), bn(x))
    assert layer.running_mean.equal(bn.running_mean)
    assert layer.class_mean.equal(bn.running_mean.expand(4, 3))


def test_flat_features_have_one_position():
    bn = nn.BatchNorm1d(2).double().eval()
    layer = BalancedBN1d.from_bn(bn, num_classes=3, eta=0.5)
    with labelled(layer, torch.tensor([1, 1])):
        layer(torch.tensor([[1.0, 2.0], [3.0, 6.0]], dtype=torch.float64))
    torch.testing.assert_close(layer.class_mean[1], torch.tensor([2.0, 4.0], dtype=torch.float64))


def test_labels_are_gone_after_the_block_however_it_ends():
    net = convert_norm(nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)), balanced(5))
    with pytest.raises(RuntimeError), labelled(net, torch.tensor([0])):
        raise RuntimeError
    assert net[1].labels is None


def test_tokens_flattened_into_the_batch_are_positions_of_their_images():
    x, labels = torch.rand(4, 6, 3), torch.tensor([0, 1, 1, 2])  # images, tokens, channels
    layers = [BalancedBN1d.from_bn(nn.BatchNorm1d(3), num_classes=3, eta=0.1) for _ in range(2)]
    for layer in layers:
        layer.labels = labels
    flat, apart = layers[0](x.flatten(0, 1)), layers[1](x.movedim(1, 2))
    torch.testing.assert_close(flat, apart.movedim(1, 2).flatten(0, 1))
    torch.testing.assert_close(layers[0].class_mean, layers[1].class_mean)
