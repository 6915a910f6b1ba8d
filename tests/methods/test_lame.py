import itertools
import math

import pytest
import torch

from grotta.methods import create


def kernel_by_hand(features, affinity, k):
    n = len(features)
    unit = [f / f.norm() for f in features]
    distance = [[(unit[i] - unit[j]).norm().item() for j in range(n)] for i in range(n)]
    kernel = torch.zeros(n, n, dtype=torch.float64)
    if affinity == "linear":
        for i in range(n):
            for j in range(n):
                kernel[i, j] = unit[i] @ unit[j]
    elif affinity == "knn":
        for i in range(n):
            others = sorted((j for j in range(n) if j != i), key=lambda j: distance[i][j])
            kernel[i, others[:k]] = 1
    else:
        width = sum(sorted(row)[k - 1] for row in distance) / n
        for i in range(n):
            for j in range(n):
                kernel[i, j] = math.exp(-(distance[i][j] ** 2) / (2 * width**2))
    return kernel


def softmax_by_hand(rows):
    return torch.stack([row.exp() / row.exp().sum() for row in rows])


def lame_by_hand(probs, kernel):
    """The assignments and the energies E = sum(u Y - (K Y_prev) Y + Y log Y) of every iteration."""
    unary = -(probs + 1e-10).log()
    y, energies = softmax_by_hand(-unary), []
    for _ in range(100):
        pairwise = kernel @ y
        y = softmax_by_hand(-unary + pairwise)
        energies.append((unary * y - pairwise * y + y * (y + 1e-300).log()).sum().item())
        if len(energies) > 1 and abs(energies[-1] - energies[-2]) <= 1e-8 * abs(energies[-2]):
            break
    return y, energies


def source_prediction(net, x, by_hand):
    """Logits and features in evaluation mode: running statistics, written out."""

    def norm(h, name, w):
        mean, var = (w[f"{name}.running_{s}"][None, :, None, None] for s in ("mean", "var"))
        weight, bias = (w[f"{name}.{s}"][None, :, None, None] for s in ("weight", "bias"))
        return (h - mean) / (var + 1e-5).sqrt() * weight + bias

    with torch.no_grad():
        logits, features = by_hand.forward(by_hand.leaf_weights(net), x, norm)
    return softmax_by_hand(logits), features


@pytest.mark.parametrize("affinity", ["knn", "rbf", "linear"])
def test_output_is_the_fixed_point_iteration_on_the_source_models_predictions(by_hand, affinity):
    net, x = by_hand.net(), by_hand.images(23)
    probs, features = source_prediction(net, x, by_hand)
    expected, _ = lame_by_hand(probs, kernel_by_hand(features, affinity, k=5))
    output = create("lame", net, affinity=affinity, k=5)(x)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("affinity", ["rbf", "linear"])
def test_the_energy_falls_and_the_output_is_a_fixed_point(by_hand, affinity):
    """With a symmetric positive semi-definite kernel; kNN's is neither, and descends by experience only."""
    net, x = by_hand.net(), by_hand.images(23)
    probs, features = source_prediction(net, x, by_hand)
    kernel = kernel_by_hand(features, affinity, k=5)
    _, energies = lame_by_hand(probs, kernel)
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(energies))

    output = create("lame", net, affinity=affinity, k=5)(x)
    torch.testing.assert_close(softmax_by_hand((probs + 1e-10).log() + kernel @ output), output, rtol=0, atol=1e-3)

    def objective(y):
        return (-(probs + 1e-10).log() * y + y * (y + 1e-300).log()).sum() - 0.5 * (y * (kernel @ y)).sum()

    assert objective(output) < objective(probs)


def test_nothing_is_adapted_and_a_single_image_keeps_its_prediction(by_hand):
    net, x = by_hand.net(), by_hand.images(1)
    adapter = create("lame", net)
    torch.testing.assert_close(adapter(x), net(x).softmax(1), rtol=0, atol=1e-8)
    assert adapter.last.adapted is False
    assert adapter.last.loss is None


def test_the_official_preset_is_the_rbf_affinity(by_hand):
    net, x = by_hand.net(), by_hand.images(23)
    assert create("lame", net, preset="official")(x).equal(create("lame", net, affinity="rbf", k=5)(x))
