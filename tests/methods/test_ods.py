import pytest
import torch

from grotta import functional as GF
from grotta.methods import create, list_methods, method_class


def test_ods_alone_says_that_it_is_a_reconstruction():
    assert [name for name in list_methods() if method_class(name).reconstruction] == ["ods"]
    assert "reconstruction" in method_class("ods").__doc__
    assert "Assumed" in method_class("ods").__doc__


@pytest.mark.parametrize("output", ["laplacian", None])
def test_a_step_is_weighted_entropy_descent_with_the_tracked_label_distribution(by_hand, output):
    net = by_hand.net()
    adapter = create("ods", net, lr=0.01, output=output)
    weights, adam = by_hand.leaf_weights(net), by_hand.Adam(lr=0.01)
    q = [1 / 5] * 5
    for step in range(3):
        x = by_hand.images(11, seed=step)
        logits, features = by_hand.forward(weights, x)
        probs = logits.softmax(1).detach()
        refined = GF.laplacian_refine(probs, features.detach()) if output else probs
        torch.testing.assert_close(adapter(x), refined, rtol=0, atol=1e-8)
        for c in range(5):
            q[c] = 0.9 * q[c] + 0.1 * sum(row[c].item() for row in refined) / len(refined)
        loss = 0.0
        for row, z in zip(logits, refined):
            p = row.exp() / row.exp().sum()
            loss = loss + 1 / (5 * q[int(z.argmax())]) * -(p * p.log()).sum() / len(logits)
        assert adapter.last.loss == pytest.approx(loss.item(), abs=1e-8)
        assert adapter.label_distribution.tolist() == pytest.approx(q, abs=1e-8)
        adam.step(weights, loss, by_hand.affine)
        by_hand.assert_same(adapter.student, weights, by_hand.affine, atol=1e-8)


def test_a_label_that_returns_after_long_counts_for_more(by_hand):
    """q_y falls while y is away; two equal predictions then weigh as 1 / q of their labels."""
    adapter = create("ods", by_hand.net(), output=None)
    certain = torch.eye(5, dtype=torch.float64)
    for _ in range(20):
        adapter.objective(torch.zeros(4, 5, dtype=torch.float64), certain[[0, 0, 0, 0]])
    logits = torch.tensor([[1.0, 0, 0, 0, 0]] * 2, dtype=torch.float64, requires_grad=True)
    adapter.objective(logits, certain[[0, 1]]).backward()
    common, rare = logits.grad[:, 0]
    q = adapter.label_distribution
    assert rare / common == pytest.approx((q[0] / q[1]).item())
    assert rare / common > 10


def test_reset_and_predict_keep_the_tracked_distribution_in_order(by_hand):
    adapter, x = create("ods", by_hand.net()), by_hand.images(6)
    uniform = adapter.label_distribution.clone()
    adapter.predict(x)
    assert adapter.label_distribution.equal(uniform)
    adapter(x)
    assert not adapter.label_distribution.equal(uniform)
    adapter.reset()
    assert adapter.label_distribution.equal(uniform)
